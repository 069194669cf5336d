"""`points status`: what runs and where. It starts nothing."""

import os
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import click
from sqlalchemy.exc import SQLAlchemyError

from app.batches.queue import count_queued
from app.cli.answer import Answer
from app.cli.options import data_dir_option, json_option
from app.cli.status_of_organizations import look_at_organizations, print_organizations
from app.cli.status_of_redis import down_with_redis, look_at_redis
from app.cli.status_of_sessions import (
    READ_ON,
    fault_of_standby,
    look_at_snapshots,
    look_at_standby,
    settings_line,
    snapshot_line,
    standby_line,
    warning_of_snapshot,
)
from app.errors import Refused
from app.local import ports, servers
from app.local.datadir import RUNNING_FILE, DataDir
from app.postgres import partitions
from app.postgres.connections import new_engine, session_settings
from app.postgres.database import has_tables, release_of_server
from app.postgres.timed_connection import missing, why_read_only
from app.settings import settings, without_password
from app.values.numbers import points
from app.webhooks.lag import lag_by_status, lags

_PAGES = {"web": "Web", "flower": "Flower"}
_OF_DATABASE = (
    "queued_batches",
    "queued_reversals",
    "oldest_queued_s",
    "oldest_snapshot",
    "partitions_ahead",
    "webhooks",
    "settings_missing",
)
_ANSWERS = {None: "unknown", True: "answers", False: "does not answer"}


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
        **_look_at_database(with_organizations=with_organizations),
        **look_at_standby(),
        **look_at_redis(),
    }
    for part, path in (("web", "/healthz"), ("flower", "/healthcheck")):
        url = found[f"{part}_url"]
        found[part] = ports.answers(f"{url}{path}") if url else (None if runs_elsewhere else False)
    found["down"], found["warnings"] = _down(found), warning_of_snapshot(found)
    Answer(found, sentence=_describe(found)).print(as_json=as_json)
    if found.get("organizations") and not as_json:
        print_organizations(found["organizations"], has_more=found["has_more_organizations"])
    if found["down"]:
        raise click.exceptions.Exit(1)


def _look_at_database(*, with_organizations: bool = False) -> dict[str, Any]:
    """Return whether PostgreSQL answers, and what its tables tell: what waits in the queue, and the organizations."""
    engine = new_engine(settings().database_url, pool_size=1, pooler=settings().database_pooler)
    try:
        with engine.begin() as connection:
            release = release_of_server(connection)
            is_made = has_tables(connection)
            row = count_queued(connection) if is_made else None
            oldest = look_at_snapshots(connection) if is_made else {"oldest_snapshot": None}
            ahead = partitions.look(connection).ahead if is_made else None
            behind = lag_by_status(lags(connection)) if is_made else {}
            known = look_at_organizations(connection) if is_made and with_organizations else {}
            read_only, lacks = why_read_only(connection), missing(connection, session_settings())
    except SQLAlchemyError as error:
        reason = _reason(error)
        unknown = dict.fromkeys(_OF_DATABASE)
        unknown |= {"organizations": None} if with_organizations else {}
        return {"database": None, "database_error": reason, **unknown}
    finally:
        engine.dispose()
    return {
        "database": f"PostgreSQL {release}",
        "database_error": read_only,
        "settings_missing": [setting._asdict() for setting in lacks],
        "queued_batches": row and row.batches,
        "queued_reversals": row and row.reversals,
        "oldest_queued_s": row and row.oldest_s,
        **oldest,
        "partitions_ahead": ahead,
        "webhooks": {name: asdict(lag) for name, lag in behind.items()} or None,
        **known,
    }


def _reason(error: SQLAlchemyError) -> str:
    """Return PostgreSQL's reason for refusing the connection: the end of the first line, after the address.

    psycopg's messages contain no password.
    """
    said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    return said.rpartition("failed: ")[2].removeprefix("FATAL:").strip().rstrip(".") or "does not answer"


def _down(found: dict[str, Any]) -> list[str]:
    """Return a sentence for each part that is down, with the heading in docs/operating.md where to read on."""
    down = []
    database_fault = found["database_error"]
    if database_fault is None and found["queued_batches"] is None:  # It answers, but could not be asked for the queue.
        database_fault = "it has no tables yet"
    if database_fault is not None:
        down.append(f"PostgreSQL: {database_fault}. {READ_ON} “503”.")
    if (fault := fault_of_standby(found)) is not None:
        down.append(f"The standby: {fault}. Reads ask the primary. {READ_ON} “A standby for the long reads”.")
    ahead = found["partitions_ahead"]
    if ahead is not None and ahead < partitions.AHEAD_MIN:
        down.append(f"Of {partitions.AHEAD_MIN} partitions ahead there are {ahead}. {READ_ON} “Few partitions”.")
    down += down_with_redis(found)
    down += [
        f"{name} does not answer. {READ_ON} “Web, beat or Flower does not answer”."
        for part, name in _PAGES.items()
        if found[part] is False
    ]
    return down


def _webhooks(by_status: dict[str, Any] | None) -> str:
    """Return how many webhooks there are, and the largest lag of those that are not disabled."""
    if by_status is None:
        return "unknown"
    sent_to = [by_status["enabled"], by_status["failing"]]
    behind_s, behind = max(lag["seconds"] for lag in sent_to), max(lag["events"] for lag in sent_to)
    counts = ", ".join(f"{lag['webhooks']} {name}" for name, lag in by_status.items() if lag["webhooks"])
    return f"{counts}; at most {points(behind)} events and {behind_s:.0f} s behind" if counts else "no webhooks"


def _describe(found: dict[str, Any]) -> str:
    swept = "no sweep seen" if found["swept_s_ago"] is None else f"swept {found['swept_s_ago']:.0f} s ago"
    oldest = found["oldest_queued_s"]
    none_queued = "unknown" if found["queued_batches"] is None else "–"
    is_wrong = [*found["down"], *found["warnings"]]
    verdict = "not well" if is_wrong else "all is well"
    lines = {
        "Status": " ".join([f"{verdict}.", *is_wrong]),
        "Version": found["version"],
        "Database": f"{found['database'] or found['database_error']}  {without_password(found['database_url'])}",
        **settings_line(found),
        **standby_line(found),
        "Redis": f"{found['redis_error'] or found['redis']}  {without_password(found['redis_url'])}",
        "Web": f"{_ANSWERS[found['web']]}  {found['web_url'] or ''}",
        "Workers": f"{', '.join(found['workers']) or 'none answers'} ({swept})",
        "Deliveries": f"{', '.join(found['deliveries']) or 'none answers'} ({_webhooks(found['webhooks'])})",
        "Beat": _ANSWERS[found["beat"]],
        "Flower": f"{_ANSWERS[found['flower']]}  {found['flower_url'] or ''}",
        "Messages": "unknown" if found["queued_messages"] is None else points(found["queued_messages"]),
        "Queued batches": "unknown" if found["queued_batches"] is None else points(found["queued_batches"]),
        "Reversals": "unknown" if found["queued_reversals"] is None else f"{points(found['queued_reversals'])} queued",
        "Oldest queued": none_queued if oldest is None else f"{oldest:.1f} s",
        "Snapshot": snapshot_line(found),
        "Partitions": "unknown" if found["partitions_ahead"] is None else f"{found['partitions_ahead']} ahead",
    }
    return "\n".join(f"{name + ':':<16}{value}".rstrip() for name, value in lines.items())
