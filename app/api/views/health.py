"""`GET /healthz` (the process answers), `/readyz` (PostgreSQL and Redis answer too) and `/metrics`, for Prometheus."""

from flask import Blueprint, Response
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.api.answers import envelope
from app.messaging.process_redis import redis, require_writes
from app.metrics.page import CONTENT_TYPE, page
from app.postgres.database import has_tables, transaction
from app.postgres.timed_connection import WrongSession

_NO_TABLES = "PostgreSQL answers, but has no tables yet: run `points migrate`."

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
def healthz() -> Response:
    return envelope.success({"status": "ok"})


@blueprint.get("/readyz")
def readyz() -> Response:
    """Answer 503 while PostgreSQL is out of reach. If only Redis is away, answer 200 and say so: sends go on."""
    faults = {}
    try:
        with transaction() as connection:
            if not has_tables(connection):
                faults["postgresql"] = [_NO_TABLES]
    except DBAPIError as error:
        wrong = isinstance(error.orig, WrongSession)
        faults["postgresql"] = [f"{error.orig}." if wrong else "PostgreSQL is out of reach."]
    except SQLAlchemyError:
        faults["postgresql"] = ["PostgreSQL is out of reach."]
    try:
        require_writes(redis())
    except RedisError:
        faults["redis"] = ["Redis is out of reach, or refuses to write."]
    if "postgresql" in faults:
        return envelope.failure(503, faults)
    return envelope.success({"status": "ready", "postgresql": "ok", "redis": "away" if faults else "ok"})


@blueprint.get("/metrics")
def metrics() -> Response:
    """Answer 200, also while servers are away: figures that cannot be read are absent."""
    return Response(page.text(), content_type=CONTENT_TYPE)
