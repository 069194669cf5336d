"""`points status`: what runs and where. It starts nothing."""

import os
from dataclasses import asdict
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import click
from redis.exceptions import RedisError
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from app import organizations
from app.batches.queue import count_queued
from app.cli.answer import Answer, Columns
from app.cli.options import data_dir_option, json_option
from app.cli.status_in_words import Found, described, down, warnings
from app.errors import Refused
from app.local import ports, servers
from app.local.datadir import RUNNING_FILE, DataDir
from app.messaging import process_redis, worker_counters
from app.messaging.jobs import answering, messages_waiting
from app.messaging.process_redis import redis_client
from app.postgres import partitions
from app.postgres.connections import new_engine, session_settings
from app.postgres.database import has_tables, release_of_server
from app.postgres.snapshots import oldest_snapshot
from app.postgres.standby import state_of_standby
from app.postgres.timed_connection import missing, why_read_only
from app.settings import settings
from app.statement.read import statement_of, today_of
from app.webhooks.lag import lag_by_status, lags

_TIMEOUT_S = 1.0
_OF_TABLES = (
    "queued_batches",
    "queued_reversals",
    "oldest_queued_s",
    "oldest_snapshot",
    "partitions_ahead",
    "webhooks",
)
# Each organization takes some look-ups a day.
_ORGANIZATIONS_MAX, _DAYS = 100, 7
_COLUMNS: Columns = {
    "ID": "id",
    "Name": "name",
    "Balance": "balance",
    "Low below": "low_balance",
    "Low": "is_low",
    "Issued today": "issued_today",
    f"Last {_DAYS} days": "issued_lately",
}


@click.command()
@click.option(
    "--organizations",
    "with_organizations",
    is_flag=True,
    help="Show each organization too: its balance, whether it is low, and the points issued today and lately.",
)
@json_option
@data_dir_option
def status(with_organizations: bool, as_json: bool, data_dir: str) -> None:
    """Show whether all is well, and what runs where. Exit status 1 when something is down.

    Web, workers, beat, Flower, versions, queue lengths, oldest queued batch.
    """
    datadir = DataDir(data_dir)
    runs_elsewhere = "DATABASE_URL" in os.environ  # Perhaps without `points up`: then nobody noted the addresses.
    if datadir.exists():
        servers.name_servers(datadir)
    elif missing := [name for name in ("DATABASE_URL", "REDIS_URL") if name not in os.environ]:
        raise Refused(
            f"Nothing runs here: there is no data directory {datadir.path}, and {' and '.join(missing)}"
            f" {'is' if len(missing) == 1 else 'are'} not set. Start with `points up`."
        )
    running = datadir.read(RUNNING_FILE)
    found: dict[str, Any] = {
        "version": version("points-issuing-service"),
        "database_url": settings().database_url,
        "redis_url": settings().redis_url,
        "web_url": running.get("web_url"),
        "flower_url": running.get("flower_url"),
        **_database(with_organizations=with_organizations),
        **_standby(),
        **look_at_redis(),
    }
    for part, path in (("web", "/healthz"), ("flower", "/healthcheck")):
        url = found[f"{part}_url"]
        found[part] = ports.answers(f"{url}{path}") if url else (None if runs_elsewhere else False)
    found["down"], found["warnings"] = down(found), warnings(found)
    Answer(found, sentence=described(found)).print(as_json=as_json)
    if (rows := found.get("organizations")) and not as_json:
        print()
        more = f"These are {len(rows)}, the low ones first; `points organizations list` shows all."
        Answer(rows, columns=_COLUMNS, sentence=more if found["has_more_organizations"] else None).print(as_json=False)
    if found["down"]:
        raise click.exceptions.Exit(1)


def _database(*, with_organizations: bool) -> Found:
    """Return whether PostgreSQL answers, and what its tables tell: what waits in the queue, and the organizations."""
    engine = new_engine(settings().database_url, pool_size=1, pooler=settings().database_pooler)
    unknown: dict[str, Any] = dict.fromkeys(_OF_TABLES)
    try:
        with engine.begin() as connection:
            return {
                "database": f"PostgreSQL {release_of_server(connection)}",
                "database_error": why_read_only(connection),
                "settings_missing": [lack._asdict() for lack in missing(connection, session_settings())],
                **unknown,
                **(_tables(connection, with_organizations=with_organizations) if has_tables(connection) else {}),
            }
    except SQLAlchemyError as error:
        unknown |= {"settings_missing": None} | ({"organizations": None} if with_organizations else {})
        return {"database": None, "database_error": _reason(error), **unknown}
    finally:
        engine.dispose()


def _tables(connection: Connection, *, with_organizations: bool) -> Found:
    queued, oldest = count_queued(connection), oldest_snapshot(connection)
    return {
        "queued_batches": queued.batches,
        "queued_reversals": queued.reversals,
        "oldest_queued_s": queued.oldest_s,
        "oldest_snapshot": oldest and {**oldest._asdict(), "remedy": oldest.remedy()},
        "partitions_ahead": partitions.look(connection).ahead,
        "webhooks": {name: asdict(lag) for name, lag in lag_by_status(lags(connection)).items()} or None,
        **(_organizations(connection) if with_organizations else {}),
    }


def _reason(error: SQLAlchemyError) -> str:
    """Return PostgreSQL's reason for refusing the connection: the end of the first line, after the address.

    psycopg's messages contain no password.
    """
    said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    return said.rpartition("failed: ")[2].removeprefix("FATAL:").strip().rstrip(".") or "does not answer"


def _organizations(connection: Connection) -> Found:
    """Return the organizations with their live figures, those with a low balance first; and whether there are more."""
    rows = organizations.find_lowest(connection, at_most=_ORGANIZATIONS_MAX + 1)
    documents = []
    for row in rows[:_ORGANIZATIONS_MAX]:
        today = today_of(connection, row.id, sandbox=False)
        first = today - timedelta(days=_DAYS - 1)
        days = statement_of(connection, row.id, sandbox=False, first=first, last=today).days
        documents.append(
            {
                "id": row.id,
                "name": row.name,
                "balance": row.balance,
                "low_balance": row.low_balance,
                "is_low": row.low_balance is not None and row.balance < row.low_balance,
                "issued_today": days[today].debited,
                "issued_lately": sum(day.debited for day in days.values()),
                "issued_by_day": {str(day): line.debited for day, line in reversed(days.items())},
            }
        )
    return {"organizations": documents, "has_more_organizations": len(rows) > _ORGANIZATIONS_MAX}


def _standby() -> Found:
    """Return how the standby follows, nothing if there is to be none."""
    try:
        state = state_of_standby(timeout_s=_TIMEOUT_S)
    except SQLAlchemyError:  # Of the primary it is said elsewhere.
        state = "it is not known how far it is, while the primary does not answer"
    if state is None:
        return {}
    standby = {"fault": state} if isinstance(state, str) else {"fault": None, **state._asdict()}
    return {"database_read_url": settings().database_read_url, "standby": standby}


def look_at_redis() -> dict[str, Any]:
    """Return what is wrong with Redis, how many messages wait, which workers answer, and when a sweep last ran."""
    found: dict[str, Any] = {"redis": None, "redis_error": None, "queued_messages": None, "workers": []}
    found |= {"deliveries": [], "swept_s_ago": None, "is_swept": True, "beat": False}
    try:
        with redis_client(settings().redis_url, timeout_s=_TIMEOUT_S, decode_responses=True) as client:
            server = client.info("server")
            release = server.get("valkey_version") or server["redis_version"]
            found["redis"] = f"{server.get('server_name', 'redis')} {release}"
            process_redis.require_writes(client)  # Otherwise no worker can answer either.
            answers = answering(timeout_s=_TIMEOUT_S)
            return found | {
                "queued_messages": messages_waiting(),
                "workers": answers.workers,
                "deliveries": answers.deliveries,
                "is_swept": not answers.workers or worker_counters.is_swept(client),
                "swept_s_ago": worker_counters.swept_s_ago(client),
                "beat": answers.beat,
            }
    except RedisError as error:
        return found | {"redis_error": process_redis.in_words(error)}
