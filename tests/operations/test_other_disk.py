"""A full partition moves to another disk while all goes on, by the commands of docs/operating.md; nobody sees less."""

import os
import pwd
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app import users
from app.erasing.erase import erase_user
from app.exports.columns import CSV, TRANSACTIONS
from app.exports.export import begin
from app.pages.filters import Filters
from app.postgres.database import snapshot, transaction
from tests.conftest import forget_everything
from tests.contract.postgresql import as_superuser, running
from tests.deadline import until
from tests.integration import books
from tests.operations.load import load
from tests.service.inside import Organization, Service
from tests.unit.deployment.files import ROOT

_PROGRAMS = Path("/usr/lib/postgresql/15/bin")
_TOLD = "/mnt/slow/points"
_PARTITION = "transactions_from_0"
_SIZE = 64

_RELATIONS = f"""
    SELECT coalesce(t.spcname, 'pg_default') FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
    WHERE c.oid = '{_PARTITION}'::regclass
       OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = '{_PARTITION}'::regclass)
"""
_COPIED = """
    SELECT count(i.indexrelid) FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid
    WHERE c.relnamespace = 'repack'::regnamespace AND c.relname LIKE 'table%'
"""


def _told(words: str) -> str:
    """Return the one command of the page that has these words."""
    page = (ROOT / "docs" / "operating.md").read_text()
    section = page.partition("### Old partitions on another disk\n")[2].partition("\n### ")[0]
    [command] = [line for line in re.findall(r"^\$ (.*)$", section, re.MULTILINE) if words in line]
    return str(command)


class Operator:
    """Who gives the commands of the page to a server, as its superuser, for a disk that is here."""

    def __init__(self, url: str, disk: Path) -> None:
        self._disk = disk
        path = f"{_PROGRAMS}:{os.environ['PATH']}"
        self._environment = os.environ | as_superuser(url) | {"PATH": path}
        self.superuser = url.replace("//points:", "//postgres:")

    def begins(self, words: str) -> subprocess.Popen[str]:
        command = _told(words).replace(_TOLD, str(self._disk))
        return subprocess.Popen(
            ["/bin/sh", "-c", command],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def gives(self, words: str) -> str:
        return self.ends(self.begins(words))

    def ends(self, command: subprocess.Popen[str]) -> str:
        said, _ = command.communicate(timeout=60)
        assert command.returncode == 0, said
        return said

    def asks(self, question: str) -> list[Any]:
        with psycopg.connect(self.superuser) as connection:
            return [row[0] for row in connection.execute(question.encode())]

    @contextmanager
    def before_the_swap(self, words: str) -> Iterator[None]:
        """Let the block run once all rows are copied: what it changes has to reach the copy before the swap."""
        with psycopg.connect(self.superuser) as reader:
            reader.execute("SELECT 1")  # What began before the copy is waited for.
            moving = self.begins(words)
            indexes = len(self.asks(_RELATIONS)) - 1
            until(lambda: self.asks(_COPIED) == [indexes] or moving.poll() is not None, "all rows are copied")
            assert moving.poll() is None, self.ends(moving)
            yield
            assert moving.poll() is None, "it waits for what began before"
        self.ends(moving)


class Caller(NamedTuple):
    """What an organization calls, and all that it can see."""

    service: Service
    acme: Organization

    def call(self, method: str, path: str, *, key: str | None = None, **request: Any) -> Any:
        answer = self.service.call(method, path, key=key or self.acme.live, **request)
        assert answer.is_success, answer.text
        return answer.json()["data"]

    def sends(self, *items: dict[str, Any], key: str | None = None, **fields: Any) -> int:
        sent = self.service.send(key or self.acme.live, {"items": list(items), "amount": 5, **fields})
        assert sent.status_code in (201, 202), sent.text
        body = sent.json()
        return int({**body["data"], **body.get("additional_data", {})}["batch_id"])

    def takes_back(self, *transaction_ids: int) -> None:
        body = {"transactions": list(transaction_ids), "reason": "a mistake"}
        assert self.call("POST", "/v1/points/reverse", json=body)["amount"] == 5 * len(transaction_ids)

    def holds_longer(self, transaction_id: int) -> None:
        body = {"held_until": (datetime.now(UTC) + timedelta(days=90)).isoformat()}
        self.call("POST", f"/v1/transactions/{transaction_id}/extend", json=body)

    def erases(self, email: str) -> None:
        with transaction() as connection:
            user = users.get(connection, email)
        erase_user(user.id)

    def transactions(self, **filters: str) -> list[Any]:
        """Return all of a list, page by page."""
        rows: list[Any] = []
        query = {"limit": "400", **filters}
        while True:
            page = self.call("GET", "/v1/transactions", params=query)
            rows += page["transactions"]
            if page["next_cursor"] is None:
                return rows
            query["cursor"] = page["next_cursor"]

    def sees(self, batch_id: int) -> dict[str, Any]:
        """Return all that the organization sees of its books, which must balance, and of one batch."""
        assert books.breaches() == []
        mine = Filters(organization_id=self.acme.id, sandbox=False)
        filters: tuple[dict[str, str], ...] = (
            {},
            {"email": "ann@example.com"},
            {"reference": "order-1"},
            {"state": "held"},
            {"state": "reversed"},
        )
        return {
            "lists": [self.transactions(**each) for each in filters],
            "batch": self.call("GET", f"/v1/batches/{batch_id}"),
            "batches": self.call("GET", "/v1/batches")["batches"],
            "file": b"".join(begin(TRANSACTIONS, CSV, mine).content()),
            "balance": self.service.balance(self.acme.live),
        }


@pytest.fixture
def disk() -> Iterator[Path]:
    """Make a folder that belongs to the server's user, as the page says."""
    with tempfile.TemporaryDirectory(prefix="points-disk-") as folder:  # As for the server itself, not below pytest's.
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        yield Path(folder)


def _id(batch_id: int, position: int) -> int:
    return batch_id * 131_072 + position


@pytest.mark.long
@pytest.mark.skipif(not (_PROGRAMS / "pg_repack").exists(), reason="needs pg_repack: Debian's postgresql-15-repack")
def test_a_full_partition_moves_to_another_disk_and_back_while_all_goes_on(
    tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(str(_PROGRAMS)) as url:
        monkeypatch.setenv("DATABASE_URL", url)
        forget_everything()
        service = Service(tmp_path / "data", DATABASE_URL=url)
        service.run("migrate", POINTS_PARTITION_BATCH_IDS=str(_SIZE))
        try:
            with service.running():
                _moves(Operator(url, disk), Caller(service, service.organization(1_000_000)))
        finally:
            forget_everything()


def _moves(operator: Operator, caller: Caller) -> None:
    service, acme = caller.service, caller.acme
    books.make_users("ann@example.com", "eve@example.com", "eva@example.com")
    ann = {"email": "ann@example.com", "reference": "order-1"}
    held = [{"email": f"held{number}@example.com"} for number in range(20)]
    first = caller.sends(ann, {"email": "eve@example.com"}, {"email": "eva@example.com"}, *held, hold_days=30)
    tomorrow, day_after = (datetime.now(UTC) + timedelta(days=days) for days in (1, 2))
    late = [caller.sends(ann, key=acme.development, send_at=at.isoformat()) for at in (tomorrow, day_after)]
    caller.sends(*({"email": f"stranger{number}@example.com"} for number in range(16 * _SIZE)))
    last = caller.sends(ann)
    assert max(first, *late) < _SIZE <= last, "the first partition is full"
    operator.gives("CREATE TABLESPACE")
    operator.gives("CREATE EXTENSION")
    assert _PARTITION in operator.gives("last_value")

    with load(service.port, callers=2) as made:
        at_first = caller.sees(first)
        with operator.before_the_swap("--tablespace=slow"):
            _change(caller, first, held=0, credited=0, erased="eve@example.com")
            _issue_late(caller, late[0], tomorrow)
            changed = caller.sees(first)
            made.goes_on()
        made.goes_on()
        assert set(operator.asks(_RELATIONS)) == {"slow"}
        assert caller.sees(first) == changed != at_first
        assert "slow" in operator.gives("last_value")

        _change(caller, first, held=9, credited=2, erased="eva@example.com")
        _issue_late(caller, late[1], day_after)
        assert [books.balance_of_user(f"held{number}@example.com") for number in (0, 9)] == [5, 5]
        changed = caller.sees(first)
        names = [row["email"] for row in changed["batch"]["transactions"]]
        assert [name.startswith("erased-") for name in names] == [False, True, True] + [False] * len(held)

        operator.gives("--tablespace=pg_default")
        made.goes_on()
        assert set(operator.asks(_RELATIONS)) == {"pg_default"}
        operator.gives("DROP TABLESPACE")
        assert caller.sees(first) == changed
    assert set(made.statuses) == {"201"}, made.statuses


def _change(caller: Caller, batch_id: int, *, held: int, credited: int, erased: str) -> None:
    """Have points claimed, taken back, held longer and a user erased. Who is held comes behind the three users."""
    books.make_users(f"held{held}@example.com")
    caller.takes_back(_id(batch_id, 3 + held + 1), _id(batch_id, credited))
    caller.holds_longer(_id(batch_id, 3 + held + 2))
    caller.erases(erased)


def _issue_late(caller: Caller, batch_id: int, moment: datetime) -> None:
    """Have a scheduled batch of the sandbox issued, into a partition that is full."""
    key = caller.acme.development
    caller.call("POST", "/v1/sandbox/clock", key=key, json={"now": moment.isoformat()})
    until(lambda: caller.call("GET", f"/v1/batches/{batch_id}", key=key)["status"] == "issued", "it is issued")


@pytest.mark.usefixtures("database")
def test_no_partition_is_swapped_below_a_snapshot() -> None:
    lock = f"LOCK TABLE {_PARTITION} IN ACCESS EXCLUSIVE MODE NOWAIT"
    with snapshot(), pytest.raises(DBAPIError, match="could not obtain lock"), transaction() as other:
        other.execute(text(lock))
