"""An upgrade under load: from a release that is installed to the next one, part by part, and back.

Until there is a second release, the next one is this tree with one more migration. What callers know of their calls is
held against the books as in `tests/crash`; here nothing fails, so no call may.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.postgres.connections import engine
from tests.crash.actor import Actor
from tests.crash.callers import Caller
from tests.crash.calls import Answer, call
from tests.crash.deliveries import Deliveries
from tests.crash.followers import Follower
from tests.crash.intents import Intents
from tests.crash.parties import REGISTERED, Parties, Party
from tests.crash.proxy import Proxy
from tests.crash.snapshot import Snapshot
from tests.deadline import until
from tests.integration import books
from tests.operations.server import Server
from tests.operations.upgrading import NEXT, Upgraded, installed, next_wheel, wheel
from tests.ports import free_port
from tests.service import release

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("broker")]

_LINES = ("web", "worker", "deliveries", "beat")
_CALLS = 10
# What a visit to the console fills, what the upkeep of hours and days does, and what is gone within seconds.
_LEFT_EMPTY = {"mails", "member_sessions", "second_factors", "service_secrets", "upload_parts", "uploads", "used_forms"}
_LEFT_EMPTY |= {"daily_sums", "held_transactions", "restores", "user_balances"}
_LEFT_EMPTY |= {"points_given_back", "unfolded_batches", "unfolded_claims", "unnumbered_events"}


class _SignUps(Actor):
    """Registers users and reads them, by the platform's calls."""

    def __init__(self, port: int, key: str, intents: Intents) -> None:
        super().__init__("sign-ups", lambda: 0.1)
        self._port, self._key, self._intents = port, key, intents
        self.ids: list[int] = []

    def act(self) -> None:
        user = _user(f"late{len(self.ids)}@example.com")
        made = call(self._port, "POST", "/v1/platform/users", key=self._key, body=user)
        self.ids.append(made.body["data"]["id"])
        read = call(self._port, "GET", f"/v1/platform/users/{self.ids[-1]}", key=self._key)
        if (made.status, read.status, read.body["data"]["email"]) != (201, 200, user["email"]):
            self._intents.violation(f"{user['email']} was answered {made.status}, and read {read.raw!r}")


def _user(email: str) -> dict[str, str]:
    return {"email": email, "first_name": "First", "last_name": "Last"}


class _Load:
    """Callers of every kind, on one address, until they are stopped."""

    def __init__(self, port: int, parties: Parties) -> None:
        self.intents = Intents()
        self.follower = Follower(port, parties, self.intents)
        self._deliveries = Deliveries(port, self.follower.logs, self.intents)
        self.sign_ups = _SignUps(port, parties.platform, self.intents)
        callers = [Caller(number, "upgrade", port, parties, self.intents) for number in range(3)]
        for caller in callers:
            caller.undone = 0.5
        self._actors: list[Actor] = [*callers, self.follower, self.sign_ups]

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._deliveries.running():
            for actor in self._actors:
                actor.start()
            try:
                yield
            finally:
                self.stop()

    def stop(self) -> None:
        for actor in self._actors:
            actor.stop()
        for actor in self._actors:
            actor.join()

    def goes_on(self) -> None:
        """Wait until as many more calls of each kind were answered."""
        before = self._counts()
        until(lambda: self._all_live() and min(map(int.__sub__, self._counts(), before)) >= _CALLS, "calls go on")

    def _all_live(self) -> bool:
        assert [actor.name for actor in self._actors if not actor.is_alive()] == [], self.intents.take_violations()
        return True

    def _counts(self) -> tuple[int, int, int]:
        return self.intents.issued_count(), self.intents.counts().get("reversals", 0), len(self.sign_ups.ids)

    def end(self) -> None:
        """End the calls: each is answered, told in the log and delivered once, and is in the books as answered."""
        self.stop()
        until(lambda: books.counts()[0] == 0, "nothing is queued")
        until(lambda: not (self._unread() or self._deliveries.missing()), "every event is read and delivered")
        wrong = Snapshot(engine(), self.intents).violations(everything=True)
        assert wrong + self.follower.told_otherwise() + self.intents.take_violations() == []
        assert {"refused connections", "unknown outcomes", "503"}.isdisjoint(self.intents.counts())
        assert books.value("SELECT count(*) FROM users WHERE starts_with(email, 'late')") == len(set(self.sign_ups.ids))

    def _unread(self) -> list[str]:
        self.follower.act()
        with engine().connect() as connection:
            return self.follower.differences(connection)


class _Filled:
    """What the first release has written, through its calls and commands: a row of each kind, to be read as it was."""

    def __init__(self, service: Upgraded) -> None:
        self._service = service
        self._key = service.command("platform-keys", "create", "Platform")["key"]
        self._make("/v1/platform/users/bulk", {"users": [_user(email) for email in REGISTERED]})
        names = ("Large", "Middle", "Small", "Probe")
        *senders, probe = [self._party(name, 20_000 if name == "Small" else 10**9) for name in names]
        self.parties = Parties(senders=senders, probe=probe, platform=self._key)
        self._own = self._party("Filled", 1_000)
        self._once: list[tuple[str, dict[str, Any], str]] = []
        self._paths = self._fill()
        until(lambda: not books.value("SELECT count(*) FROM unnumbered_events"), "the logs tell all that was written")
        self._was = self._answers()

    def is_the_same(self) -> None:
        """See that a release reads what the first has written, and answers a repeated call, as that does."""
        assert self._answers() == self._was

    def _answers(self) -> list[tuple[str, int, bytes]]:
        read = [(path, call(self._service.port, "GET", path, key=key)) for path, key in self._paths.items()]
        again = [(words[0], self._post_once(number, *words)) for number, words in enumerate(self._once)]
        return [(path, answer.status, answer.raw) for path, answer in read + again]

    def _party(self, name: str, balance: int) -> Party:
        body = {"name": name, "balance": balance, "sandbox_balance": balance, "held_days": 1}
        made = self._make("/v1/platform/organizations", body)["id"]
        path = f"/v1/platform/organizations/{made}/keys"
        live, development = (self._make(path, {"sandbox": sandbox})["key"] for sandbox in (False, True))
        return Party(id=made, name=name, live=live, development=development)

    def _fill(self) -> dict[str, str]:
        """Write a row of each kind, and return what reads them, with the key for it."""
        organization, mine = f"/v1/platform/organizations/{self._own.id}", self._own.live
        self._make(f"{organization}/refills", {"amount": 500, "reference": "invoice-1"})
        self._make(f"{organization}/members", _user("ann@example.com") | {"role": "admin"})
        limited = self._once_for(f"{organization}/keys", {"daily_limit": 400}, self._key)["data"]["key"]
        one, two = ["one@example.com"], ["two@example.com", "held@example.com"]
        ids = [self._make("/v1/platform/users", _user(email))["id"] for email in one + two[:1]]
        later = f"{datetime.now(UTC) + timedelta(days=300):%FT%TZ}"
        paid = self._send(limited, "paid", recipients=one + two)
        off = self._send(limited, "called off", recipients=one, send_at=later)
        _made(call(self._service.port, "POST", f"/v1/batches/{off}/cancel", key=mine, body={}))
        self._send(mine, "later", recipients=one, send_at=later)
        self._send(self._own.development, "rehearsed", recipients=one)
        self._once_for("/v1/points/reverse", {"batch": paid, "amount": 3, "reason": "A mistake"}, mine)
        self._make(f"/v1/platform/users/{ids[1]}", {"email": "three@example.com"}, method="PATCH")
        lists = ("transactions", "batches", f"batches/{paid}", "reversals", "events", "organization")
        users = [f"/v1/platform/users/{id_}{of}" for id_ in ids for of in ("", "/entries")]
        of_platform = [*(organization + path for path in ("", "/members", "/refills")), *users]
        return {f"/v1/{path}": mine for path in lists} | dict.fromkeys(of_platform, self._key)

    def _send(self, key: str, label: str, **body: Any) -> int:
        sent = self._once_for("/v1/points/send", {"amount": 10, "label": label, **body}, key)
        batch_id: int = (sent["additional_data"] or sent["data"])["batch_id"]
        return batch_id

    def _once_for(self, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
        """Make a call that is repeated later."""
        self._once.append((path, body, key))
        return _made(self._post_once(len(self._once) - 1, path, body, key))

    def _post_once(self, number: int, path: str, body: dict[str, Any], key: str) -> Answer:
        name = {"Idempotency-Key": f"once-{number}"}
        return call(self._service.port, "POST", path, key=key, body=body, headers=name)

    def _make(self, path: str, body: dict[str, Any], *, method: str = "POST") -> Any:
        return _made(call(self._service.port, method, path, key=self._key, body=body))["data"]


def _made(answer: Answer) -> dict[str, Any]:
    assert answer.status in (200, 201, 202), answer.raw
    return answer.body


@pytest.fixture
def service(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upgraded]:
    """Run each part of an installed release, on a database that it has migrated itself."""
    programs = installed(tmp_path / "first", wheel(released))
    with Server(tmp_path / "postgresql").running(monkeypatch):
        service = Upgraded(tmp_path, programs)
        try:
            service.command("migrate")
            for line in _LINES:
                service.replace(line, lambda _: None)
            yield service
        finally:
            service.supervisor.stop()


def test_a_release_is_rolled_to_the_next_and_back_under_load(service: Upgraded, tree: Path, tmp_path: Path) -> None:
    first, following = service.programs, installed(tmp_path / "second", next_wheel(tree, tmp_path))
    filled = _Filled(service)
    with Proxy(free_port(), service.port) as balancer:
        load = _Load(balancer.port, filled.parties)

        def lead(port: int) -> None:
            balancer.tell("targets", port)

        with load.running():
            load.goes_on()
            assert _empty() <= _LEFT_EMPTY
            _is_well(service, filled, release.VERSION)
            for programs, version in ((following, NEXT), (first, release.VERSION)):
                service.install(programs)
                service.command("migrate")  # Of a database that is newer, the release before says no more.
                for line in _LINES:
                    service.replace(line, lead)
                    load.goes_on()
                _is_well(service, filled, version)
            load.end()
    assert service.deaths() == {}
    statuses = {line["status"] for line in service.answered()}
    assert {200, 201} <= statuses <= set(range(500)), statuses
    assert service.command("audit")["balanced"] is True


def _empty() -> set[str]:
    """Return the tables without a row."""
    tables = """
        SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
            AND NOT relispartition ORDER BY 1
    """
    return {name for name in books.values(tables) if not books.value(f"SELECT EXISTS (SELECT FROM {name})")}


def _is_well(service: Upgraded, filled: _Filled, version: str) -> None:
    assert service.command("audit")["balanced"] is True
    filled.is_the_same()
    assert call(service.port, "GET", "/healthz", key="").body["data"]["version"] == version
