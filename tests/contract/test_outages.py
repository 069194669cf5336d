"""What dies, hangs or is lost on the way: what was accepted is issued exactly once, and the rest goes on."""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import redis

from tests.contract.calls import Key, Organization, addresses, organization, success
from tests.deadline import until
from tests.service.up import Service

# Below the rate limit of the narrow service.
_LOOK_EVERY_S = 0.25
_SWEPT_AT = "points:swept_at"

Body = dict[str, Any]


@pytest.fixture
def made(narrow: Service) -> Organization:
    return organization(narrow, 10**9)


def _bodies(number: int, *, recipients: int = 1) -> list[Body]:
    return [{"recipients": addresses(recipients), "amount": 2} for _ in range(number)]


def _by_batch(bodies: list[Body], answers: Iterable[httpx.Response]) -> dict[int, Body]:
    return {answer.json()["additional_data"]["batch_id"]: body for answer, body in zip(answers, bodies, strict=True)}


def _assert_issued_once(key: Key, bodies: dict[int, Body], *, before: int) -> None:
    """Wait until each of these batches is issued, and require that each was debited once and nothing else was."""
    for batch_id, body in bodies.items():
        until(lambda number=batch_id: key.is_issued(number), within_s=60, every_s=_LOOK_EVERY_S)
        transactions = key.batch(batch_id)["transactions"]
        assert [(one["email"], one["debited"]) for one in transactions] == [(to, True) for to in body["recipients"]]
    assert key.balance == before - sum(len(body["recipients"]) * body["amount"] for body in bodies.values())


def test_while_redis_is_silent_sends_are_accepted_and_everything_else_goes_on(made: Organization) -> None:
    key, service, before, bodies = made.live, made.service, made.live.balance, _bodies(4)
    with ThreadPoolExecutor() as pool, service.paused("redis"):
        sent = [pool.submit(key.send, body) for body in bodies]
        read = [pool.submit(service.call, "GET", path) for path in ("/healthz", "/metrics")]
        made.refill(1)
        assert success(key.verify(bodies[0]))["validated"] is True
        assert [one.result().status_code for one in read] == [200, 200]
        answers = [one.result() for one in sent]
        # 202 is what the short wait of this service may come to.
        assert {answer.status_code for answer in answers} <= {201, 202}
        assert len(success(key.get("/v1/batches", limit=4))["batches"]) == 4
    _assert_issued_once(key, _by_batch(bodies, answers), before=before + 1)


def test_a_broker_that_comes_back_empty_loses_no_batch(made: Organization) -> None:
    key, service, before = made.live, made.service, made.live.balance
    with service.paused("worker"):
        queued = {key.queue(body): body for body in _bodies(3)}
        said = service.command("status", status=1).stdout.splitlines()[0]
        assert "No worker answers. Read on in docs/operating.md at “Sends answer 202”." in said
        with redis.Redis.from_url(service.json("status", status=1)["redis_url"]) as client:
            client.flushall()
    _assert_issued_once(key, queued, before=before)


@pytest.mark.long
def test_status_names_an_upkeep_that_hangs_and_not_one_whose_last_sweep_was_before_a_restart(
    made: Organization,
) -> None:
    service = made.service
    until(lambda: _is_well(service), within_s=60, every_s=1)
    with redis.Redis.from_url(service.json("status")["redis_url"]) as client:
        with service.paused("upkeep"):
            assert client.get(_SWEPT_AT) is not None
            client.set(_SWEPT_AT, 1_000)  # As if it hung since then.
            said = service.command("status", status=1).stdout.splitlines()[0]
            assert said.startswith("Status:         not well. Workers answer, and no sweep has run for ")
            assert said.endswith(" s. Read on in docs/operating.md at “Sends answer 202”.")
        client.set(_SWEPT_AT, 1_000)  # As Redis keeps it while nothing runs.
        found = service.run("status", "--json", "--data-dir", str(service.data_dir))
    assert not [one for one in json.loads(found.stdout)["down"] if "sweep" in one]


def test_a_service_that_was_killed_whole_goes_on_when_started_again(made: Organization) -> None:
    key, service, before = made.live, made.service, made.live.balance
    with service.paused("worker"):
        queued = {key.queue(body): body for body in _bodies(3)}
        organizations = service.json("organizations", "list")
        service.kill()
    service.start()
    _assert_issued_once(key, queued, before=before)
    # The demo organization is of the first start alone.
    assert len(service.json("organizations", "list")) == len(organizations)
    until(lambda: _is_well(service), within_s=60, every_s=1)


def _is_well(service: Service) -> bool:
    done = service.run("status", "--json", "--data-dir", str(service.data_dir))
    found = json.loads(done.stdout)
    assert done.returncode == (1 if found["down"] else 0)
    return all(found[name] for name in ("database", "redis", "web", "workers", "beat", "flower"))
