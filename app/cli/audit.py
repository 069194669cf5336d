"""`points audit`: proves that the books balance."""

import time
from collections import Counter
from contextlib import suppress

import click
from redis.exceptions import RedisError

from app.audit.run import BREACHES_SHOWN_MAX
from app.audit.run import audit as audit_books
from app.cli.answer import Answer, document
from app.cli.operator_command import operator_command
from app.messaging import worker_counters
from app.postgres.database import snapshot
from app.postgres.standby import long_read
from app.values.numbers import counted


@click.command()
@operator_command
def audit() -> Answer:
    """Check that the books balance. Exit status 0 when they do, 1 when not, each breach named.

    It reads one snapshot and takes no lock that others wait for, so it may run while the service works. While it
    runs, PostgreSQL cannot clean up old row versions: a large, busy service has a standby for it (DATABASE_READ_URL).
    """
    began = time.monotonic()
    found = long_read(audit_books, within=snapshot)
    with suppress(RedisError):  # Without Redis there are no metrics to note it for.
        worker_counters.note_audit(seconds=time.monotonic() - began, breaches=len(found.breaches))
    looked_at = ", ".join(
        (
            counted(found.organizations, "organization"),
            counted(found.users, "user"),
            counted(found.batches, "batch", "es"),
            counted(found.transactions, "transaction"),
        )
    )
    if not found.breaches:
        return Answer(document(found, balanced=True), sentence=f"The books balance: {looked_at}.")
    lines = [f"{breach.subject}: {breach.rule}, but: {breach.seen}" for breach in found.breaches]
    is_cut = max(Counter(breach.rule for breach in found.breaches).values()) == BREACHES_SHOWN_MAX
    number = f"{'at least ' if is_cut else ''}{counted(len(lines), 'breach', 'es')}"
    lines.append(f"The books do not balance: {number} in {looked_at}.")
    return Answer(document(found, balanced=False), sentence="\n".join(lines), exit_status=1)
