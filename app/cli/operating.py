"""`points migrate`, `restored`, `audit` and `webhooks`: what keeps the whole service in order."""

import time
from collections import Counter
from contextlib import suppress
from functools import partial

import click
from redis.exceptions import RedisError
from sqlalchemy import Connection

import migrations
from app.actions import log as actions
from app.audit.run import BREACHES_SHOWN_MAX
from app.audit.run import audit as audit_books
from app.cli.answer import Answer, columns, document
from app.cli.operator_command import change_command, operator_command
from app.events.restores import SKIPPED, leave_behind
from app.members import second_factor
from app.messaging import worker_counters
from app.postgres.database import snapshot
from app.postgres.standby import long_read
from app.values.numbers import counted
from app.webhooks.actions import reencrypt_all
from app.webhooks.lag import Lag, lags


@click.command()
@partial(operator_command, makes_data=True, migrates=True)
def migrate() -> Answer:
    """Bring the database up to date. It is safe to run this twice, also at the same time."""
    revision = migrations.revision()
    newer = "" if revision == migrations.newest() else f", later than this release's {migrations.newest()}"
    return Answer({"revision": revision}, sentence=f"The database is at revision {revision}{newer}.")


@click.command()
@change_command
def restored(connection: Connection) -> Answer:
    """Leave behind what was given after the moment of a backup: its ids, and the numbers of its events.

    Give it once, after a restore or a takeover that lost commits, before web and workers start. Then nothing
    new has an id or a number that a caller has seen, and each later event tells restored_at.
    """
    noted = leave_behind(connection)
    actions.record(connection, actions.DATABASE_RESTORED)
    sentence = f"Ids go on {SKIPPED:,} higher, and so do the numbers of {counted(noted.event_logs, 'event log')}."
    return Answer({**noted._asdict(), "skipped": SKIPPED}, sentence=sentence)


@click.command()
@operator_command
def audit() -> Answer:
    """Check that the books balance. Exit status 0 when they do, 1 when not, each breach named.

    It reads one snapshot and takes no lock that others wait for, so it may run while the service works. While it
    runs, PostgreSQL cannot clean up old row versions: a large, busy service has a standby for it (DATABASE_READ_URL).
    """
    began = time.monotonic()
    proof = long_read(audit_books)
    with suppress(RedisError):  # Without Redis there are no metrics to note it for.
        worker_counters.note_audit(seconds=time.monotonic() - began, breaches=len(proof.breaches))
    organizations, users = counted(proof.organizations, "organization"), counted(proof.users, "user")
    batches, transactions = counted(proof.batches, "batch", "es"), counted(proof.transactions, "transaction")
    looked_at = f"{organizations}, {users}, {batches}, {transactions}"
    if not proof.breaches:
        return Answer(document(proof, balanced=True), sentence=f"The books balance: {looked_at}.")
    lines = [f"{breach.subject}: {breach.rule}, but: {breach.seen}" for breach in proof.breaches]
    is_cut = max(Counter(breach.rule for breach in proof.breaches).values()) == BREACHES_SHOWN_MAX
    number = f"{'at least ' if is_cut else ''}{counted(len(lines), 'breach', 'es')}"
    lines.append(f"The books do not balance: {number} in {looked_at}.")
    return Answer(document(proof, balanced=False), sentence="\n".join(lines), exit_status=1)


@click.group()
def webhooks() -> None:
    """List webhooks with how far they are behind, and encrypt their secrets again."""


_COLUMNS = columns(
    *("id", "organization_id", "mode", "status"),
    ("Reason", "disabled_reason"),
    ("Behind", "lag_events"),
    ("Seconds", lambda row: f"{row['lag_seconds']:.0f}"),
    "failures",
    ("Again at", "retry_at"),
    ("URL", "url"),
)


@webhooks.command(name="list")
@operator_command
def list_webhooks() -> Answer:
    """List the webhooks of all organizations."""
    with snapshot() as connection:
        behind = lags(connection)
    return Answer([_document(lag) for lag in behind], columns=_COLUMNS)


_SHOWN = (
    *("id", "organization_id", "sandbox", "mode", "url", "types", "status", "disabled_reason", "position"),
    *("lag_events", "lag_seconds", "failures", "failing_since", "retry_at"),
)


def _document(lag: Lag) -> dict[str, object]:
    webhook = lag.webhook
    own = {"status": webhook.status, "mode": "development" if webhook.sandbox else "live"}
    document = {**webhook._asdict(), **own, "lag_events": lag.events, "lag_seconds": lag.seconds}
    return {name: document[name] for name in _SHOWN}


@webhooks.command()
@change_command
def reencrypt(connection: Connection) -> Answer:
    """Encrypt all secrets with the newest key of POINTS_SECRETS_KEY, so that older keys can be removed from it."""
    count, factors = reencrypt_all(connection), second_factor.reencrypt_all(connection)
    sentence = f"The secrets of {count} webhooks and {factors} second factors are encrypted with the newest key."
    return Answer({"webhooks": count, "second_factors": factors}, sentence=sentence)
