"""Section `apart`: registrations that claim points of one organization, beside ten others that reverse 10,000 each."""

import itertools
import time
from collections.abc import Iterator, Sequence
from functools import partial

from app.local.ports import HOST
from benchmarks.caller import Caller
from benchmarks.load import Plan, answered_s, load, post, together
from benchmarks.options import Options
from benchmarks.rows import Measurement, Name, Row, named, take_turns
from benchmarks.service import Sender, Service, running

ORGANIZATIONS = 10
LARGE = 10_000
# A registration this often: at any rate of the machine they are as many, and few enough to leave it to the reversals.
_EVERY_S = 0.02
# Each reversal takes one point of each recipient, so a batch can be reversed this often.
_REVERSED_AT_MOST = 1_000


def measure(options: Options) -> list[Row]:
    """Measure registrations alone and beside the reversals, in turn."""
    with running() as service:
        measures = of_service(service, seconds=2 * options.seconds)
        return take_turns(measures, rounds=options.rounds, wait_idle=partial(wait_until_done, service))


def of_service(service: Service, *, seconds: float) -> dict[Name, Measurement]:
    """Return the measurements on a running service, which is given what they need."""
    emails = service.accounts("apart", LARGE)
    reversing = [_reversals(service, service.sender(), emails) for _ in range(ORGANIZATIONS)]
    service.wait_until_folded()
    registrations = _Registrations(service)
    beside = named("registration", beside=f"{ORGANIZATIONS} that reverse {LARGE:,}")
    return {
        named("registration", beside="nothing"): partial(_measure, registrations, [], seconds),
        beside: partial(_measure, registrations, reversing, seconds),
    }


def wait_until_done(service: Service) -> None:
    """Wait until no reversal is queued that its caller did not wait for, and all credits are folded."""
    with service.connect() as connection:
        while connection.execute("SELECT FROM reversals WHERE status = 'queued' LIMIT 1").fetchone() is not None:
            time.sleep(0.2)
    service.wait_until_folded()


def _measure(registrations: "_Registrations", reversing: Sequence[Plan], seconds: float) -> dict[str, float]:
    """Return p50 and p99 of the registrations; beside reversals, also how many of these were done in a second."""
    first, *others = load(registrations.next(seconds), *reversing, seconds=seconds)
    figures = first.figures()
    seen = {name: figures[name] for name in ("p50_s", "p99_s")}
    return seen | ({"reversals_per_s": together(others).calls / seconds} if others else {})


def _reversals(service: Service, sender: Sender, emails: Sequence[str]) -> Plan:
    """Send a batch to these addresses, and plan one caller who takes one point back from each, again and again."""
    body = {"recipients": list(emails), "amount": _REVERSED_AT_MOST}
    _once(service, post(sender.key, "/v1/points/send", body), expect=201)
    with service.connect() as connection:
        row = connection.execute("SELECT max(id) FROM batches").fetchone()
    assert row is not None, "it was sent"
    reversal = post(sender.key, "/v1/points/reverse", {"batch": row[0], "amount": 1, "reason": "Bench"})
    return Plan(port=service.port, requests=[reversal], callers=1)


class _Registrations:
    """New addresses for which one organization holds points, and the requests that register them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._holder = service.sender()
        self._platform_key = service.platform_key("users:register")
        self._emails: Iterator[str] = (f"{number}.newcomer@example.com" for number in itertools.count())

    def next(self, seconds: float) -> Plan:
        """Plan one caller who registers new addresses, for each of which a point is held."""
        count = min(LARGE, 2 * int((seconds + 1) / _EVERY_S))
        emails = list(itertools.islice(self._emails, count))
        held = post(self._holder.key, "/v1/points/send", {"recipients": emails, "amount": 1})
        _once(self._service, held, expect=201)
        users = [{"email": email, "first_name": "Ada", "last_name": "Lovelace"} for email in emails]
        requests = [post(self._platform_key, "/v1/platform/users", user) for user in users]
        return Plan(port=self._service.port, requests=requests, callers=1, every_s=_EVERY_S)


def _once(service: Service, request: bytes, *, expect: int) -> None:
    caller = Caller(HOST, service.port, [request], 0)
    try:
        answered_s(caller, request, expect=expect)
    finally:
        caller.close()
