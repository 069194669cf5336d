"""Proves that the tests can fail: plants known bugs, one to a copy of the tree, and expects each to be caught.

`python -m tests.mutants` copies the tree, applies one planted bug to the copy, runs the tests that
guard against it there, and expects them to be red. A bug that no test sees is a hole in the suite. Only tests of
`make test` count, so none that is `long`, and several copies are tried at once, so none that is `alone`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent
# Everything but what is made here: the environment, data, caches, history.
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".points", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
_TIMEOUT_S = 600
_AT_ONCE = int(os.environ.get("MUTANTS_AT_ONCE") or os.cpu_count() or 2)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One planted bug: in each file the sound text becomes the broken one; `tests` are those that must see it."""

    name: str
    edits: Sequence[tuple[str, str, str]]
    tests: Sequence[str]


MUTANTS = (
    Mutant(
        name="the row lock is dropped",
        edits=[
            (
                "app/ledger/issue.py",
                "true) <> ''\n    FOR NO KEY UPDATE",
                "true) <> ''",
            )
        ],
        tests=["tests/integration/test_locks.py", "tests/integration/test_concurrency.py"],
    ),
    Mutant(
        name="the row lock holds up who only points at the row",
        edits=[
            (
                "app/ledger/issue.py",
                "true) <> ''\n    FOR NO KEY UPDATE",
                "true) <> ''\n    FOR UPDATE",
            )
        ],
        tests=["tests/integration/test_locks.py"],
    ),
    Mutant(
        name="a message is acknowledged before its work",
        edits=[("app/messaging/jobs.py", '"task_acks_late": True', '"task_acks_late": False')],
        tests=["tests/integration/test_messages.py"],
    ),
    Mutant(
        name="the guard on the batch's state is removed",
        edits=[
            ("app/batches/queue.py", 'IS_DUE = f"""status = \'queued\' AND (retry_at', 'IS_DUE = f"""(retry_at'),
            (
                "app/ledger/issue.sql",
                (
                    "refusal IS NULL FROM organization) AND d.batches > 0 AND b.id = d.batch_id\n"
                    "      AND b.organization_id = %(organization_id)s AND b.status = 'queued'"
                ),
                (
                    "refusal IS NULL FROM organization) AND d.batches > 0 AND b.id = d.batch_id\n"
                    "      AND b.organization_id = %(organization_id)s"
                ),
            ),
        ],
        tests=["tests/integration/test_drain.py"],
    ),
    Mutant(
        name="balances are changed unordered",
        edits=[
            (
                "app/ledger/fold.py",
                "GROUP BY organization_id, user_id ORDER BY organization_id, user_id",
                "GROUP BY organization_id, user_id ORDER BY md5(user_id::text)",
            )
        ],
        tests=["tests/integration/test_locks.py"],
    ),
    Mutant(
        name="the debit stands in another transaction than the rows",
        edits=[
            (
                "app/ledger/issue.sql",
                "    WHERE o.id = %(organization_id)s::bigint AND o.ctid = n.ctid\n",
                "    WHERE o.id = -%(organization_id)s::bigint AND o.ctid = n.ctid\n",
            ),
            (
                "app/ledger/drain.py",
                "            outcomes = _round(organization_id)\n",
                (
                    "            outcomes = _round(organization_id)\n"
                    "            from sqlalchemy import text\n"
                    "            with transaction() as connection:\n"
                    "                for one in outcomes or []:\n"
                    "                    its = 'sandbox_balance' if one.sandbox else 'balance'\n"
                    "                    points = one.debited_amount or 0\n"
                    "                    debit = f'UPDATE organizations SET {its} = {its} - :points WHERE id = :id'\n"
                    "                    which = {'points': points, 'id': organization_id}\n"
                    "                    connection.execute(text(debit), which)\n"
                ),
            ),
        ],
        tests=["tests/integration/test_audit_at_work.py"],
    ),
    Mutant(
        name="the sweep is off, and Redis is emptied",
        edits=[("worker/upkeep.py", "    for organization_id in waiting:\n", "    for organization_id in []:\n")],
        tests=["tests/integration/test_upkeep.py"],
    ),
    Mutant(
        name="positions are taken from a set",
        edits=[
            (
                "app/batches/request.py",
                "        emails=[address.text for address in addresses],",
                "        emails=list({address.text for address in addresses}),",
            )
        ],
        tests=["tests/contract/test_send.py"],
    ),
    Mutant(
        name="a read does not ask for the organization",
        edits=[
            (
                "app/noun.py",
                '_SCOPE = "organization_id = :organization_id',
                '_SCOPE = ":organization_id > 0',
            )
        ],
        tests=["tests/contract/test_isolation.py"],
    ),
    Mutant(
        name="a replay runs again",
        edits=[
            (
                "app/batches/accept.py",
                '"idempotency_key": idempotency_key,',
                '"idempotency_key": None,',
            ),
            (
                "app/batches/accept.py",
                "None if idempotency_key is None else request.meaning().hex()",
                "None",
            ),
        ],
        tests=["tests/contract/test_retries.py"],
    ),
    Mutant(
        name="verify counts points in floating point",
        edits=[
            (
                "app/values/numbers.py",
                "min(recipients, balance // amount)",
                "min(recipients, int(balance / amount))",
            )
        ],
        tests=["tests/unit/test_verify_decision.py"],
    ),
    Mutant(
        name="a drain counts points in floating point",
        edits=[("migrations/versions/0001_tables.sql", "$1 / $3)::int", "floor($1::float8 / $3)::bigint)::int")],
        tests=["tests/integration/test_paying.py"],
    ),
    Mutant(
        name="a reversal takes the points each time",
        edits=[
            (
                "app/ledger/issue.py",
                "coalesce(t.points_left, t.amount, b.amount) AS points_left",
                "coalesce(t.amount, b.amount) AS points_left",
            ),
        ],
        tests=["tests/integration/test_reverse.py"],
    ),
    Mutant(
        name="points that were taken back are claimed",
        edits=[
            (
                "app/ledger/claim.py",
                "coalesce(t.points_left, t.amount, h.amount) AS amount",
                "coalesce(t.amount, h.amount) AS amount",
            )
        ],
        tests=["tests/integration/test_reverse.py"],
    ),
    Mutant(
        name="points are claimed after their return was due",
        edits=[
            (
                "app/ledger/claim.py",
                "coalesce(h.held_until, its.held_until, 'infinity') > (SELECT now FROM moment)",
                "true",
            )
        ],
        tests=["tests/integration/test_returns.py"],
    ),
    Mutant(
        name="a cancelled batch is reversed",
        edits=[("app/reversals/accept.py", "if batch_status in NEVER_ISSUED:", "if batch_status in ():")],
        tests=["tests/contract/test_nothing_taken.py"],
    ),
    Mutant(
        name="a reversal that is refused counts what it would give back",
        edits=[("app/reversals/request.py", "recoverable=points if takes else 0", "recoverable=points")],
        tests=["tests/contract/test_nothing_taken.py"],
    ),
    Mutant(
        name="a cancellation is told as a refusal",
        edits=[
            (
                "app/batches/schedule.py",
                'cancelled_at=NOW)}", "batch.cancelled"',
                'cancelled_at=NOW)}", "batch.refused"',
            )
        ],
        tests=["tests/integration/test_audit.py"],
    ),
    Mutant(
        name="an answer is not bound to its idempotency key",
        edits=[("app/batches/batch.py", '*(*KEPT, "idempotency_key", ', "*(*KEPT, ")],
        tests=["tests/integration/test_audit.py"],
    ),
    Mutant(
        name="a claim is told with one transaction too many",
        edits=[("app/ledger/claim.py", "'count', count(*), 'amount'", "'count', count(*) + 1, 'amount'")],
        tests=["tests/integration/test_audit.py"],
    ),
    Mutant(
        name="true is an amount",
        edits=[
            (
                "app/fields/field.py",
                "return isinstance(value, int) and not isinstance(value, bool)",
                "return isinstance(value, int)",
            )
        ],
        tests=["tests/unit/test_openapi_requests.py"],
    ),
    Mutant(
        name="of a name that stands twice in a body the last counts",
        edits=[("app/api/requests/body.py", "_require_object(value), names_twice(body)", "_require_object(value), {}")],
        tests=["tests/e2e/test_bad_input.py"],
    ),
    Mutant(
        name="a webhook may lead to what stands for a private address",
        edits=[
            (
                "app/values/ip_addresses.py",
                "return address.ipv4_mapped or address.sixtofour or address",
                "return address.ipv4_mapped or address",
            )
        ],
        tests=["tests/unit/test_allowed_receivers.py"],
    ),
    Mutant(
        name="a cursor leads on with other filters",
        edits=[("app/pages/cursors.py", "row_id, *(str(value) for value in _values(filters)))", "row_id)")],
        tests=["tests/unit/test_values.py"],
    ),
    Mutant(
        name="an address that is percent-encoded stands in the log",
        edits=[("app/logs.py", "(?:@|%40)", "(?:@)")],
        tests=["tests/unit/test_logs.py"],
    ),
    Mutant(
        name="a stranger that has the number of a leftover is ended",
        edits=[
            (
                "app/local/supervisor.py",
                'if process_identity(process) != left["created"]:',
                'if process_identity(process) == "":',
            )
        ],
        tests=["tests/unit/test_supervisor_leftovers.py"],
    ),
    Mutant(
        name="an address that may have been read wrongly is paid",
        edits=[
            (
                "app/recipient_files/cells.py",
                "if not (is_unicode or address.text.isascii()):",
                "if not address.text:",
            )
        ],
        tests=["tests/unit/test_lists.py"],
    ),
)


def main() -> None:
    """Try every mutant, or those whose number or a part of whose name is given; exit 1 if one is not caught."""
    chosen = [
        (number, mutant)
        for number, mutant in enumerate(MUTANTS, start=1)
        if not sys.argv[1:] or any(word == str(number) or word in mutant.name for word in sys.argv[1:])
    ]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        verdicts = pool.map(_told, chosen)
        caught = sum(verdict.startswith("caught") for verdict in verdicts)
    print(f"{caught} of {len(chosen)} planted bugs were caught.")
    sys.exit(caught != len(chosen) or not chosen)


def _told(numbered: tuple[int, Mutant]) -> str:
    """Try a mutant, and print what came of it."""
    number, mutant = numbered
    started = time.monotonic()
    verdict = _try(mutant)
    print(f"{number:>3}. {mutant.name}\n     {verdict}  ({time.monotonic() - started:.0f} s)", flush=True)
    return verdict


def _try(mutant: Mutant) -> str:
    """Plant a bug in a copy of the tree; it is caught when a test is red there that is green without it."""
    with tempfile.TemporaryDirectory(prefix="points-mutant-") as folder:
        copy = Path(folder) / "points"
        shutil.copytree(_ROOT, copy, ignore=_NOT_COPIED)
        for name, sound, broken in mutant.edits:
            _plant(mutant.name, copy / name, sound, broken)
        red = _first_red(mutant.tests, copy)
        if red is None:
            return "SURVIVED"
        for name, _, _ in mutant.edits:
            shutil.copy(_ROOT / name, copy / name)
        if _first_red([red], copy) is not None:
            return f"NOT PROVEN: {red} is red without it, too"
        return f"caught by {red}"


def _plant(what: str, file: Path, sound: str, broken: str) -> None:
    text = file.read_text()
    if text.count(sound) != 1:
        sys.exit(f"“{what}” does not fit {file.name} any more: its text is there {text.count(sound)} times.")
    file.write_text(text.replace(sound, broken))


def _first_red(tests: Sequence[str], copy: Path) -> str | None:
    """Run tests in the copy and return the first that fails, or None when all pass."""
    of_make_test = ["-m", "not long and not alone"]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *of_make_test, *tests]
    path = os.pathsep.join([str(copy), str(copy / "client" / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode == 0:
        return None
    ended = [line for line in done.stdout.splitlines() if line.startswith(("FAILED tests", "ERROR tests"))]
    red = [line.partition(" ")[2].partition(" - ")[0] for line in ended]  # A test's parameters may have blanks.
    if not red:
        sys.exit(f"pytest could not run {tests}: exit status {done.returncode}\n{done.stdout[-2000:]}")
    return red[0]


if __name__ == "__main__":
    main()
