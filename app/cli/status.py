"""`points status`: what runs and where, what is wrong with it, and where to read on. It starts nothing."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
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
from app.cli.answer import Answer, columns
from app.cli.options import data_dir_option, json_option
from app.errors import Refused
from app.local import ports, servers
from app.local.datadir import RUNNING_FILE, DataDir
from app.local.postgresql import PostgreSQL
from app.mail.due import Unsent, unsent
from app.messaging import process_redis, worker_counters
from app.messaging.jobs import answering, messages_waiting
from app.messaging.process_redis import redis_client
from app.postgres import partitions
from app.postgres.connections import new_engine, session_settings
from app.postgres.database import has_tables, release_of_server
from app.postgres.room import is_full
from app.postgres.snapshots import Snapshot, oldest_snapshot
from app.postgres.standby import state_of_standby
from app.postgres.timed_connection import missing, why_read_only
from app.scope import Scope
from app.settings import settings, without_password
from app.statement.read import statement_of, today_of
from app.values.numbers import counted, points
from app.webhooks.lag import lag_by_status, lags
from migrations import why_unfit

# All that it learns, by the names of `--json`.
Facts = Mapping[str, Any]

_TIMEOUT_S = 1.0
# By as much its log of changes grows at once; without that much room PostgreSQL ends.
_LOG_GROWS_BY_BYTES = 16 << 20
_OF_TABLES = (
    *("queued_batches", "queued_reversals", "oldest_queued_s"),
    *("oldest_snapshot", "partitions_ahead", "webhooks", "unsent_mail"),
)
# Each organization takes some look-ups a day.
_ORGANIZATIONS_MAX, _DAYS = 100, 7
_COLUMNS = columns(
    *("id", "name", "balance", ("Low below", "low_balance"), "is_low", "issued_today"),
    (f"Last {_DAYS} days", "issued_lately"),
)


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
    running = datadir.read(RUNNING_FILE) if datadir.exists() else {}
    facts: dict[str, Any] = {
        "version": version("points-issuing-service"),
        "database_url": settings().database_url,
        "redis_url": settings().redis_url,
        "web_url": running.get("web_url") or settings().public_url,
        "flower_url": running.get("flower_url"),
        **_database(with_organizations=with_organizations),
        **_standby(),
        **look_at_redis(),
    }
    if facts["database"] is None and not runs_elsewhere:
        facts["database_error"] = _fault_of_folder(datadir, facts["database_error"])
    for part, path in (("web", "/healthz"), ("flower", "/healthcheck")):
        answered = (url := facts[f"{part}_url"]) and ports.status_of(f"{url}{path}")
        # At an address that `points up` did not note, what is silent here may answer others.
        may_answer = runs_elsewhere and not running.get(f"{part}_url")
        facts[part] = None if not answered and may_answer else answered == 200
    facts["down"], facts["warnings"] = down(facts), warnings(facts)
    Answer(facts, sentence=described(facts)).print(as_json=as_json)
    if (rows := facts.get("organizations")) and not as_json:
        print()
        more = f"These are {len(rows)}, the low ones first; `points organizations list` shows all."
        Answer(rows, columns=_COLUMNS, sentence=more if facts["has_more_organizations"] else None).print(as_json=False)
    if facts["down"]:
        raise click.exceptions.Exit(1)


def _database(*, with_organizations: bool) -> Facts:
    """Return whether PostgreSQL answers, and what its tables tell: what waits in the queue, and the organizations."""
    engine = new_engine(settings().database_url, pool_size=1, pooler=settings().database_pooler)
    unknown: dict[str, Any] = dict.fromkeys(_OF_TABLES)
    try:
        with engine.execution_options(isolation_level="REPEATABLE READ").begin() as connection:
            return {
                "database": f"PostgreSQL {release_of_server(connection)}",
                "database_error": why_read_only(connection) or _why_unfit(connection) or _why_full(connection),
                "settings_missing": [lack._asdict() for lack in missing(connection, session_settings())],
                **unknown,
                **(_tables(connection, with_organizations=with_organizations) if has_tables(connection) else {}),
            }
    except SQLAlchemyError as error:
        unknown |= {"settings_missing": None} | ({"organizations": None} if with_organizations else {})
        return {"database": None, "database_error": _reason(error), **unknown}
    finally:
        engine.dispose()


def _fault_of_folder(datadir: DataDir, reason: str) -> str:
    """Say what is wrong with the folder of an embedded database that does not answer; else the reason that it has."""
    if not PostgreSQL(datadir).is_initialised():
        return f"there is no database in {datadir.path}"
    is_full = shutil.disk_usage(datadir.path).free < _LOG_GROWS_BY_BYTES
    return f"the disk of {datadir.path} is full ({reason})" if is_full else reason


def _why_unfit(connection: Connection) -> str | None:
    """Say whether the tables are another release's, in words that stand before a full stop."""
    sentence = why_unfit(connection, whole=True) if has_tables(connection) else None
    return sentence and sentence.rstrip(".")


def _why_full(connection: Connection) -> str | None:
    return "its disk is full" if is_full(connection) else None


def _tables(connection: Connection, *, with_organizations: bool) -> Facts:
    queued, oldest = count_queued(connection), oldest_snapshot(connection)
    return {
        "queued_batches": queued.batches,
        "queued_reversals": queued.reversals,
        "oldest_queued_s": queued.oldest_s,
        "oldest_snapshot": oldest and {**oldest._asdict(), "remedy": oldest.remedy()},
        "partitions_ahead": partitions.look(connection).ahead,
        "webhooks": {name: asdict(lag) for name, lag in lag_by_status(lags(connection)).items()} or None,
        "unsent_mail": unsent(connection)._asdict(),
        **(_organizations(connection) if with_organizations else {}),
    }


def _reason(error: SQLAlchemyError) -> str:
    """Return PostgreSQL's reason for refusing the connection: the end of the first line, after the address.

    psycopg's messages contain no password.
    """
    line = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    return line.rpartition("failed: ")[2].removeprefix("FATAL:").strip().rstrip(".") or "does not answer"


def _organizations(connection: Connection) -> Facts:
    """Return the organizations with their live figures, those with a low balance first; and whether there are more."""
    rows = organizations.find_lowest(connection, at_most=_ORGANIZATIONS_MAX + 1)
    documents = []
    for row in rows[:_ORGANIZATIONS_MAX]:
        scope = Scope(row.id, sandbox=False)
        today = today_of(connection, scope)
        first = today - timedelta(days=_DAYS - 1)
        days = statement_of(connection, scope, first=first, last=today).days
        document = {name: getattr(row, name) for name in ("id", "name", "balance", "low_balance")}
        document["is_low"] = row.low_balance is not None and row.balance < row.low_balance
        document["issued_today"] = days[today].debited
        document["issued_lately"] = sum(day.debited for day in days.values())
        document["issued_by_day"] = {str(day): line.debited for day, line in reversed(days.items())}
        documents.append(document)
    return {"organizations": documents, "has_more_organizations": len(rows) > _ORGANIZATIONS_MAX}


def _standby() -> Facts:
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
    facts: dict[str, Any] = {"redis": None, "redis_error": None, "queued_messages": None, "workers": []}
    facts |= {"deliveries": [], "swept_s_ago": None, "is_swept": True, "beat": False}
    try:
        with redis_client(settings().redis_url, timeout_s=_TIMEOUT_S, decode_responses=True) as client:
            server = client.info("server")
            release = server.get("valkey_version") or server["redis_version"]
            facts["redis"] = f"{server.get('server_name', 'redis')} {release}"
            process_redis.require_writes(client)  # Otherwise no worker can answer either.
            answers = answering(timeout_s=_TIMEOUT_S)
            return facts | {
                "queued_messages": messages_waiting(),
                "workers": answers.workers,
                "deliveries": answers.deliveries,
                "is_swept": not answers.workers or worker_counters.is_swept(client),
                "swept_s_ago": worker_counters.swept_s_ago(client),
                "beat": answers.beat,
            }
    except RedisError as error:
        return facts | {"redis_error": process_redis.in_words(error)}


_READ_ON = "Read on in docs/operating.md at"
_NO_ANSWER = "Web, beat or Flower does not answer"
_ANSWERS = {None: "unknown", True: "answers", False: "does not answer"}


def down(facts: Facts) -> list[str]:
    """Return a sentence for each part that is down, with the heading in docs/operating.md where to read on."""
    database, ahead, at_least = facts["database_error"], facts["partitions_ahead"], partitions.AHEAD_MIN
    if database is None and facts["queued_batches"] is None:  # It answers, but did not tell the queue.
        database = "it has no tables yet"
    standby = facts.get("standby", {}).get("fault")
    is_low = ahead is not None and ahead < at_least
    faults = [
        (database, f"PostgreSQL: {database}", "503"),
        (standby, f"The standby: {standby}. Reads ask the primary", "A standby for the long reads"),
        (is_low, f"Of {at_least} partitions ahead there are {ahead}", "Few partitions"),
        *faults_with_redis(facts),
        *((facts[page] is False, f"{page.capitalize()} does not answer", _NO_ANSWER) for page in ("web", "flower")),
    ]
    return [f"{sentence}. {_READ_ON} “{heading}”." for is_wrong, sentence, heading in faults if is_wrong]


def faults_with_redis(facts: Facts) -> Sequence[tuple[bool, str, str]]:
    """Return the fault of Redis, or those of each part that answers through it: whether it is there, in words."""
    if facts["redis_error"] is not None:
        return [(True, f"Redis {facts['redis_error']}", "503")]
    unswept = f"Workers answer, and no sweep has run for {facts['swept_s_ago'] or 0:.0f} s"
    return [
        (not facts["deliveries"], "No worker delivers to webhooks", "A webhook is behind"),
        (not facts["workers"], "No worker answers", "Sends answer 202"),
        (not facts["is_swept"], unswept, "Sends answer 202"),
        (facts["beat"] is False, "Beat does not answer: no audit runs by itself", _NO_ANSWER),
    ]


def warnings(facts: Facts) -> list[str]:
    """Return a sentence of a snapshot that is too old, mail that is not sent, and web not asked: nothing is down."""
    return [*_of_snapshot(facts["oldest_snapshot"]), *_of_mail(facts["unsent_mail"]), *_of_web(facts)]


def _of_web(facts: Facts) -> list[str]:
    """Return a sentence if web could not be asked."""
    if facts["web"] is not None:
        return []
    why = f"nothing answers here at {facts['web_url']}" if facts["web_url"] else "POINTS_PUBLIC_URL is not set"
    return [f"Whether web answers is not known: {why}. {_READ_ON} “{_NO_ANSWER}”."]


def _of_snapshot(document: Facts | None) -> list[str]:
    if document is None:
        return []
    oldest = Snapshot(**{name: document[name] for name in Snapshot._fields})
    if not oldest.is_too_old:
        return []
    since = f"For {oldest.seconds / 60:.0f} minutes {oldest.who()} has kept vacuum from removing dead rows"
    return [f"{since}, and sends become slower: {oldest.remedy()}. {_READ_ON} “A snapshot is held open”."]


def _of_mail(document: Facts | None) -> list[str]:
    """Return a sentence of the mail that the SMTP server does not take."""
    if document is None or not document["error"]:
        return []
    mail = Unsent(**document)
    counts = (
        f"{counted(mail.failing, 'mail')} to members wait for another attempt, {points(mail.given_up)} were given up"
    )
    return [f"{counts} in the last 7 days; the last failed with {mail.error}. {_READ_ON} “Mail is not sent”."]


def described(facts: Facts) -> str:
    said = [*facts["down"], *facts["warnings"]]
    verdict = "all is well." if not said else "not all is known." if said == _of_web(facts) else "not well."
    lines = {"Status": " ".join([verdict, *said])}
    lines |= {name: words for name, word in _LINES.items() if (words := word(facts)) is not None}
    return "\n".join(f"{name + ':':<16}{words}".rstrip() for name, words in lines.items())


def _page(facts: Facts, part: str) -> str:
    return f"{_ANSWERS[facts[part]]}  {facts[f'{part}_url'] or ''}"


def _at(words: str, url: str) -> str:
    return f"{words}  {without_password(url)}"


def _settings(facts: Facts) -> str | None:
    """Word the settings that sessions behind a pooler lack; None if they lack none."""
    lacks = [f"{lack['name']} is {lack['value']} ({lack['mend']})" for lack in facts["settings_missing"] or ()]
    return f"{'; '.join(lacks)}. {_READ_ON} “PgBouncer”." if lacks else None


def _standby_in_words(facts: Facts) -> str | None:
    state = facts.get("standby")
    if state is None:
        return None
    behind = state["fault"] or (
        f"PostgreSQL {state['release']}, {state['lag_s']:.0f} s and {points(state['lag_bytes'])} bytes behind"
    )
    return _at(behind, facts["database_read_url"])


def _workers(facts: Facts) -> str:
    swept = "no sweep seen" if facts["swept_s_ago"] is None else f"swept {facts['swept_s_ago']:.0f} s ago"
    return f"{', '.join(facts['workers']) or 'none answers'} ({swept})"


def _deliveries(facts: Facts) -> str:
    return f"{', '.join(facts['deliveries']) or 'none answers'} ({_webhooks(facts['webhooks'])})"


def _webhooks(by_status: Facts | None) -> str:
    """Word how many webhooks there are, and the largest lag of those that are not disabled."""
    if by_status is None:
        return "unknown"
    sent_to = [by_status["enabled"], by_status["failing"]]
    behind_s, behind = max(lag["seconds"] for lag in sent_to), max(lag["events"] for lag in sent_to)
    counts = ", ".join(f"{lag['webhooks']} {name}" for name, lag in by_status.items() if lag["webhooks"])
    return f"{counts}; at most {points(behind)} events and {behind_s:.0f} s behind" if counts else "no webhooks"


def _number(key: str, words: str = "{}") -> Callable[[Facts], str]:
    return lambda facts: "unknown" if facts[key] is None else words.format(points(facts[key]))


def _oldest(key: str, words: Callable[[Any], str]) -> Callable[[Facts], str]:
    """Word an age if there is something that has an age."""
    nothing = ("–", "unknown")
    return lambda facts: nothing[facts["queued_batches"] is None] if facts[key] is None else words(facts[key])


_LINES: Mapping[str, Callable[[Facts], str | None]] = {
    "Version": lambda facts: str(facts["version"]),
    "Database": lambda facts: _at(facts["database"] or facts["database_error"], facts["database_url"]),
    "Settings": _settings,
    "Standby": _standby_in_words,
    "Redis": lambda facts: _at(facts["redis_error"] or facts["redis"], facts["redis_url"]),
    "Web": lambda facts: _page(facts, "web"),
    "Workers": _workers,
    "Deliveries": _deliveries,
    "Beat": lambda facts: _ANSWERS[facts["beat"]],
    "Flower": lambda facts: _page(facts, "flower"),
    "Messages": _number("queued_messages"),
    "Queued batches": _number("queued_batches"),
    "Reversals": _number("queued_reversals", "{} queued"),
    "Oldest queued": _oldest("oldest_queued_s", "{:.1f} s".format),
    "Snapshot": _oldest("oldest_snapshot", "{0[seconds]:.0f} s".format),
    "Partitions": _number("partitions_ahead", "{} ahead"),
}
