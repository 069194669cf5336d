"""A coarse guard against lost speed: the service beside the rival of the bench, in one run and in turn.

Both sides meet the same machine within the same seconds, so a busy one slows both alike. The bounds lie far below what
is measured: about 9 times the rate of the rival, and 100 times its recipients per second.
"""

from functools import partial

import pytest

from benchmarks.busy import ACCOUNTS
from benchmarks.caller import Caller
from benchmarks.load import Plan, answered_s, load, post_send
from benchmarks.rival import processes
from benchmarks.rows import divided, find, named, take_turns
from benchmarks.service import running
from tests.ports import HOST

pytestmark = [pytest.mark.alone, pytest.mark.long]

_CALLERS, _SECONDS, _ROUNDS = 32, 1, 3
_LARGE = 10_000
# The rival loops over the recipients, so fewer of them tell what each takes.
_LARGE_FOR_RIVAL = 500

_RATE_AT_LEAST = 4.0
# What has lost half of its speed falls below it.
_RECIPIENTS_AT_LEAST = 60.0


def test_busy_and_large_sends_are_many_times_as_fast_as_the_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as service:
        monkeypatch.setenv("DATABASE_URL", service.database_url)
        monkeypatch.setenv("REDIS_URL", service.redis_url)
        emails = service.accounts("speed", _LARGE)
        with processes.running(emails) as rival:
            measures = {}
            for who, port, path, key, large in (
                ("ours", service.port, "/v1/points/send", service.sender().key, _LARGE),
                ("rival", rival.port, "/send", processes.KEY, _LARGE_FOR_RIVAL),
            ):
                ones = [post_send(key, [email], path=path) for email in emails[:ACCOUNTS]]
                measures[named(who, callers=_CALLERS)] = partial(
                    _rate, Plan(port=port, requests=ones, callers=_CALLERS)
                )
                whole = post_send(key, emails[:large], path=path)
                measures[named(who, callers=1)] = partial(_recipients_per_s, port, whole, large)
            rows = take_turns(measures, rounds=_ROUNDS)
    for callers, at_least in ((_CALLERS, _RATE_AT_LEAST), (1, _RECIPIENTS_AT_LEAST)):
        ratio = divided(*(find(rows, who, "per_s", callers=callers) for who in ("ours", "rival")))
        assert ratio is not None
        print(
            f"{callers} callers: {ratio.median:.1f} times the rival ({min(ratio.values):.1f} – {max(ratio.values):.1f})"
        )
        assert ratio.median >= at_least, ratio.values


def _rate(plan: Plan) -> dict[str, float]:
    return {"per_s": load(plan, seconds=_SECONDS)[0].calls / _SECONDS}


def _recipients_per_s(port: int, request: bytes, recipients: int) -> dict[str, float]:
    caller = Caller(HOST, port, [request], 0)
    try:
        return {"per_s": recipients / answered_s(caller, request, expect=201)}
    finally:
        caller.close()
