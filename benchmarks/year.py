"""Section `year`: a service after a year of a thousandth of the load, beside the same service on its first day.

libfaketime moves the clock of every part, PostgreSQL's too, a day at a time; no row is written by hand. Each day each
job of the upkeep and of beat runs once, here, beside the service's own. Transactions have partitions of a thousandth,
too. `pages` and `time` are PostgreSQL's own, of statements explained as they run; so a busy machine hardly disturbs
them.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import click
from redis import Redis
from sqlalchemy import Connection as SQLConnection

from app.audit.run import audit
from app.pages import batch_pages, transaction_pages
from app.pages.filters import Filters
from app.postgres import partitions
from app.postgres.database import snapshot
from app.scope import Scope
from app.statement.read import statement_of
from app.webhooks import cursors
from benchmarks.body import accept_and_drain
from benchmarks.floor import Connection
from benchmarks.in_process import in_this_process
from benchmarks.options import NotMeasured, Options
from benchmarks.plans import WHOLE, explained
from benchmarks.rows import Row
from benchmarks.service import Sender, Service, running
from benchmarks.year_load import Callers
from tests.crash import clock
from tests.receiver import Receiver

_DAYS, _A_FEW_DAYS = 366, 3
_A_DAY_S, _AUDITED_IN_S = 86_400, 120.0
_ENVIRONMENT = {
    "POINTS_PARTITION_BATCH_IDS": "16384",
    "POINTS_SMTP_URL": "log:",
    "POINTS_MAIL_FROM": "points@example.com",
    "POINTS_PUBLIC_URL": "https://points.example.com",
    "POINTS_WEBHOOK_ALLOW": "127.0.0.0/8",
}
# Each process looks at the clock's file once a second.
_CLOCK_SEEN_IN_S = 1.05
# The moments of the rows that a job ends, and after how many days.
_BOUNDS = {
    "events": ("created_at FROM events", 90),
    "api_requests": ("created_at FROM api_requests", 30),
    "webhook_deliveries": ("created_at FROM webhook_deliveries", 30),
    "batches with a key": ("created_at FROM batches WHERE idempotency_key IS NOT NULL", 30),
    "reversals with a key": ("created_at FROM reversals WHERE idempotency_key IS NOT NULL", 30),
    "kept_answers": ("created_at FROM kept_answers", 1),
    "uploads, not sent": ("created_at FROM uploads WHERE sent_at IS NULL", 7),
    "upload_parts": ("created_at FROM uploads JOIN upload_parts ON upload_id = id", 31),
    "mails": ("created_at FROM mails", 1),
    "member_sessions": ("created_at FROM member_sessions", 1),
    "used_forms": ("used_at FROM used_forms", 1),
    "unnumbered_events": ("created_at FROM unnumbered_events", 0),
    "unfolded_batches": ("issued_at FROM unfolded_batches JOIN batches ON id = batch_id", 0),
    "transactions held": (
        """issued_at FROM batches b JOIN transactions t ON t.batch_id = b.id
           WHERE b.held_until IS NOT NULL AND t.debited AND NOT t.credited AND t.points_left IS DISTINCT FROM 0""",
        30,
    ),
}
# A job that runs once a day leaves the rows of a day more.
_SPARE_DAYS = 2
_SIZES = """
    SELECT relname, pg_total_relation_size(oid) + (SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)
                                                   FROM pg_inherits WHERE inhparent = c.oid)
    FROM pg_class c
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    ORDER BY relname
"""


def measure(options: Options) -> list[Row]:
    """Let the days pass, and look at the service on the first, on one when every retention has ended rows, and last."""
    if not clock.can_be_set():
        raise NotMeasured("libfaketime is not there, or not made for this system.")
    with tempfile.TemporaryDirectory(prefix="points-clock-") as folder, Receiver().running() as receiver:
        Path(folder).chmod(0o755)
        its = clock.Clock(Path(folder) / "clock")
        its.set(0)
        clocked = its.environment() | {"FAKETIME_CACHE_DURATION": "0"}
        with (
            running(worker_events=True, environment=_ENVIRONMENT | clocked) as service,
            in_this_process(service, _ENVIRONMENT),
            service.connect() as connection,
        ):
            year = _Year(its, service, connection, receiver.url)
            return year.passed(_A_FEW_DAYS if options.quick else _DAYS)


class _Year:
    """The days as they pass."""

    def __init__(self, its: clock.Clock, service: Service, connection: Connection, webhook: str) -> None:
        self._clock, self._service, self._connection = its, service, connection
        self._sender = service.sender()
        self._callers = Callers(service, self._sender, webhook)
        self._first_ways: dict[str, set[str]] = {}

    def passed(self, days: int) -> list[Row]:
        rows: list[Row] = []
        began, jobs = time.monotonic(), _jobs()
        for day in range(1, days + 1):
            self._clock.set((day - 1) * _A_DAY_S)
            time.sleep(_CLOCK_SEEN_IN_S)
            row = self._connection.execute("SELECT clock_timestamp()").fetchone()
            assert row is not None
            now = datetime.fromisoformat(str(row[0]))
            self._callers.day(day, now)
            if day not in (1, (days + 2) // 3, days):
                for work in jobs.values():
                    work()
                continue
            looks = [
                self._explained(day, jobs | _statements(self._sender, self._callers.emails, now)),
                self._sizes(),
                self._bounds(day),
                self._beside(),
            ]
            click.echo(f"Day {day}, after {time.monotonic() - began:.0f} s.")
            rows += [
                Row(what=what, of={"day": day}, figure=figure, values=[value])
                for look in looks
                for what, figures in look.items()
                for figure, value in figures.items()
            ]
        return sorted(rows, key=lambda row: row.what)

    def _explained(self, day: int, runs: Mapping[str, Callable[[], object]]) -> dict[str, dict[str, float]]:
        """Run each of these; return the pages it touched, its time, and how many tables it read whole."""
        figures = {}
        for name, run in runs.items():
            with explained() as seen:
                run()
            first = self._first_ways.setdefault(name, seen.ways)
            new, gone = (", ".join(sorted(ways)) for ways in (seen.ways - first, first - seen.ways))
            if new or gone:
                click.echo(f"Day {day}, {name}: reads {new or 'nothing new'}; no longer {gone or 'nothing'}.")
            whole = sum(way.startswith(WHOLE) for way in seen.ways)
            figures[name] = {"pages": seen.pages, "time_s": seen.time_s, "tables read whole": whole}
        return figures

    def _sizes(self) -> dict[str, dict[str, float]]:
        """Return the rows and bytes of each table that has any."""
        sizes = {
            f"table {name}": {"rows": self._number(f"SELECT count(*) FROM {name}"), "size_bytes": float(str(size))}  # noqa: S608
            for name, size in self._connection.execute(_SIZES).fetchall()
        }
        return {name: figures for name, figures in sizes.items() if figures["rows"]}

    def _bounds(self, day: int) -> dict[str, dict[str, float]]:
        """Return how many rows there are that a job ends, and how old the oldest is."""
        figures = {}
        for name, (moments, days) in _BOUNDS.items():
            ages = f"FROM (SELECT clock_timestamp() - {moments}) AS of_each (age)"
            oldest = self._number(f"SELECT coalesce(extract(epoch FROM max(age)), 0) / {_A_DAY_S} {ages}")  # noqa: S608
            if oldest > days + _SPARE_DAYS:
                click.echo(f"Kept too long: {name}, {oldest:.0f} days on day {day} instead of {days}.")
            count = self._number(f"SELECT count(*) {ages}")
            figures[f"ended {name}"] = {"rows": count, "kept days": days, "oldest, days": oldest}
        return figures

    def _beside(self) -> dict[str, dict[str, float]]:
        """Return what grows outside PostgreSQL."""
        with Redis.from_url(self._service.redis_url) as redis:
            keys, memory = redis.dbsize(), redis.info("memory")["used_memory"]
        logs = [self._service.folder / "output", *(self._service.folder / "postgresql").glob("*.log")]
        flower = self._service.folder.glob("flower.*")
        return {
            "Redis": {"rows": keys, "size_bytes": memory},
            "logs": {"size_bytes": sum(file.stat().st_size for file in logs)},
            "Flower's file": {"size_bytes": sum(file.stat().st_size for file in flower)},
        }

    def _number(self, statement: str) -> float:
        row = self._connection.execute(statement.encode()).fetchone()
        assert row is not None, "an aggregate always gives a row"
        return float(str(row[0]))


def _statements(sender: Sender, emails: list[str], now: datetime) -> dict[str, Callable[[], object]]:
    """Return a send, the lists, and what a statement and a delivery read."""
    asked = partial(Filters, organization_id=sender.organization_id, sandbox=False)
    lists = {
        "list of batches": (batch_pages.page, asked()),
        "list of transactions": (transaction_pages.page, asked()),
        "list of an address": (transaction_pages.page, asked(email_key=emails[0])),
        "list of a new address": (transaction_pages.page, asked(email_key="nobody@example.com")),
        "list of a reference": (transaction_pages.page, asked(reference=f"1-0-{emails[8]}")),
        "list of what is held": (transaction_pages.page, asked(state="held")),
    }
    scope = Scope(sender.organization_id, sandbox=False)
    month = {"first": now.date() - timedelta(days=27), "last": now.date()}
    return {
        "send of 1": partial(accept_and_drain, sender, emails[:1]),
        "send of 100": partial(accept_and_drain, sender, emails[:100]),
        **{name: partial(_read, page, filters, start=None, limit=100) for name, (page, filters) in lists.items()},
        "statement of 28 days": partial(_read, statement_of, scope, **month),
        "look for deliveries": partial(_read, cursors.due),
        "audit": partial(_read, _audit),
    }


def _read(read: Callable[..., object], *arguments: object, **named: object) -> None:
    with snapshot() as connection:
        read(connection, *arguments, **named)


def _audit(connection: SQLConnection) -> None:
    if breaches := audit(connection, time_limit_s=_AUDITED_IN_S).breaches:
        raise NotMeasured(f"The books do not balance: {breaches[:5]}")


def _jobs() -> dict[str, Callable[[], object]]:
    """Return the upkeep's jobs, and beat's. They may be imported only once the servers are named."""
    from app.ledger import held_list  # noqa: PLC0415
    from worker import tasks, upkeep  # noqa: PLC0415
    from worker.deliveries import Look  # noqa: PLC0415

    return {
        "number": upkeep.number_all,
        "release": upkeep.release,
        "sweep": upkeep.sweep,
        "fold": upkeep.fold_credits,
        "drop_events": upkeep.drop_old_events,
        "drop_requests": upkeep.drop_requests,
        "drop_deliveries": Look._drop_old_deliveries,  # noqa: SLF001
        "forget_idempotency_keys": tasks.forget_idempotency_keys,
        "forget_uploads": tasks.forget_uploads,
        "return": upkeep.return_unclaimed,
        "reject_unanswered": upkeep.reject_unanswered,
        "claim": partial(upkeep.claim_crossed, registered_within_s=None),
        "count_days": upkeep.count_days,
        "make_partitions": partitions.make,
        "list_held": held_list.list_full,
    }
