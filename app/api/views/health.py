"""`GET /healthz` (the process answers), `/readyz` (PostgreSQL and Redis answer too) and `/metrics`, for Prometheus."""

from typing import Literal

from flask import Response
from pydantic import BaseModel
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.api import envelope
from app.api.calls import Answer, call
from app.api.refusals import Refusal
from app.messaging.process_redis import redis, require_writes
from app.metrics.page import CONTENT_TYPE, page
from app.noun_fields import says, says_one_of
from app.postgres.database import transaction
from app.postgres.room import is_full
from app.postgres.timed_connection import WrongSession
from migrations import why_unfit

_AWAY = "PostgreSQL is out of reach."
_FULL = "PostgreSQL's disk is full."
_NO_REDIS = "Redis is out of reach, or refuses to write."


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = says("Always `ok`.", "ok")
    version: str = says("The version of the service.", "1.0.0")


class Readiness(BaseModel):
    """PostgreSQL answers; `redis` says whether Redis does."""

    status: Literal["ready"] = says("Always `ready`; otherwise the answer is 503.", "ready")
    postgresql: Literal["ok"] = says("Always `ok`; while PostgreSQL is away, the answer is 503.", "ok")
    redis: str = says_one_of(("ok", "away"), "Sends go on while it is away, and take up to 3 s more.", "ok")


@call(
    "GET /healthz",
    "Whether the process answers",
    group="Service",
    scopes=(),
    answers=Answer(about="The process answers.", data=Health, examples={"alive": {}}),
)
def show_health() -> Response:
    """Does not check PostgreSQL or Redis."""
    return envelope.success({"status": "ok", "version": envelope.SERVICE_VERSION})


@call(
    "GET /readyz",
    "Whether the service can work",
    group="Service",
    scopes=(),
    answers=Answer(
        about="PostgreSQL answers; `redis` says whether Redis does.", data=Readiness, examples={"ready": {}}
    ),
    refuses=[
        Refusal(
            name="NotReady",
            about="PostgreSQL is out of reach, its disk is full, or its tables are not those of this release; `errors`"
            " says which, and also whether Redis is away.",
            status=503,
            examples={"not_ready": {"postgresql": _AWAY, "redis": _NO_REDIS}},
            codes=["not_ready"],
        )
    ],
)
def show_readiness() -> Response:
    """Asks PostgreSQL and Redis. Without Redis the service works, but more slowly."""
    faults = {}
    try:
        with transaction() as connection:
            if sentence := why_unfit(connection) or (_FULL if is_full(connection) else None):
                faults["postgresql"] = [sentence]
    except DBAPIError as error:
        wrong = isinstance(error.orig, WrongSession)
        faults["postgresql"] = [f"{error.orig}." if wrong else _AWAY]
    except SQLAlchemyError:
        faults["postgresql"] = [_AWAY]
    try:
        require_writes(redis())
    except RedisError:
        faults["redis"] = [_NO_REDIS]
    if "postgresql" in faults:
        return envelope.failure(503, faults)
    return envelope.success({"status": "ready", "postgresql": "ok", "redis": "away" if faults else "ok"})


@call(
    "GET /metrics",
    "The figures of the whole service",
    group="Service",
    scopes=(),
    answers=Answer(about="The figures.", content={"text/plain": {"schema": {"type": "string"}}}),
)
def show_metrics() -> Response:
    """In the text format of Prometheus. Figures that cannot be read now are absent."""
    return Response(page.text(), content_type=CONTENT_TYPE)
