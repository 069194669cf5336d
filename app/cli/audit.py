"""`points audit`: proves that the books balance."""

import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from redis.exceptions import RedisError

from app.archive import require_parquet
from app.audit.run import BREACHES_SHOWN_MAX
from app.audit.run import audit as audit_books
from app.cli.answer import Answer
from app.cli.operator_command import document, operator_command
from app.messaging import last_runs
from app.postgres.database import snapshot
from app.postgres.standby import long_read
from app.values.numbers import counted

if TYPE_CHECKING:
    from app.archive.proving import Proof


@click.command()
@click.option(
    "--archive",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Prove the files of the archive in this directory as well; it reads all of them.",
)
@operator_command
def audit(directory: Path | None = None) -> Answer:
    """Check that the books balance. Exit status 0 when they do, 1 when not, each breach named.

    It reads one snapshot and takes no lock that others wait for, so it may run while the service works. While it
    runs, PostgreSQL cannot clean up old row versions: a large, busy service has a standby for it (DATABASE_READ_URL).
    """
    began = time.monotonic()
    found = long_read(audit_books, within=snapshot)
    proof = None if directory is None else _prove(directory)
    faults = [] if proof is None else proof.faults
    with suppress(RedisError):  # Without Redis there are no metrics to note it for.
        last_runs.note_audit(seconds=time.monotonic() - began, breaches=len(found.breaches) + len(faults))
    looked_at = ", ".join(
        (
            counted(found.organizations, "organization"),
            counted(found.users, "user"),
            counted(found.batches, "batch", "es"),
            counted(found.transactions, "transaction"),
        )
    )
    of_archive = {} if proof is None else {"archive": document(proof)}
    answer = document(found, balanced=not found.breaches, **of_archive)
    lines = [f"{breach.subject}: {breach.rule}, but: {breach.seen}" for breach in found.breaches]
    if not found.breaches:
        lines.append(f"The books balance: {looked_at}.")
    else:
        is_cut = max(Counter(breach.rule for breach in found.breaches).values()) == BREACHES_SHOWN_MAX
        number = f"{'at least ' if is_cut else ''}{counted(len(found.breaches), 'breach', 'es')}"
        lines.append(f"The books do not balance: {number} in {looked_at}.")
    lines += [] if proof is None else _lines_of(proof)
    return Answer(answer, sentence="\n".join(lines), exit_status=1 if found.breaches or faults else 0)


def _prove(directory: Path) -> "Proof":
    require_parquet()
    from app.archive.proving import prove  # noqa: PLC0415  # It needs an extra, which may be missing.

    return prove(directory)


def _lines_of(proof: "Proof") -> list[str]:
    lines = [f"{fault.file}: {fault.seen}." for fault in proof.faults]
    what = f"{counted(proof.ranges, 'range')} with {counted(proof.transactions, 'transaction')}"
    if not lines:
        return [f"The archive is whole: {what}."]
    return [*lines, f"The archive is not whole: {counted(len(lines), 'fault')} in {what}."]
