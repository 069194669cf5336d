"""`GET /healthz` (the process answers) and `GET /readyz` (what it needs answers too)."""

from flask import Blueprint, Response
from psycopg.errors import UndefinedTable
from redis.exceptions import RedisError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.api import envelope
from app.database import transaction
from app.process_redis import redis

_NO_TABLES = "PostgreSQL answers, but has no tables yet: run `points migrate`."

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
def healthz() -> Response:
    return envelope.success({"status": "ok"})


@blueprint.get("/readyz")
def readyz() -> Response:
    """Answer 503 while PostgreSQL or Redis is out of reach, naming which."""
    faults = {}
    try:
        with transaction() as connection:
            connection.execute(text("SELECT FROM organizations LIMIT 1"))
    except SQLAlchemyError as error:
        has_no_tables = isinstance(getattr(error, "orig", None), UndefinedTable)
        faults["postgresql"] = [_NO_TABLES if has_no_tables else "PostgreSQL is out of reach."]
    try:
        redis().ping()
    except RedisError:
        faults["redis"] = ["Redis is out of reach."]
    if faults:
        return envelope.failure(503, faults)
    return envelope.success({"status": "ready"})
