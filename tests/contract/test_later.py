"""Later: a batch waits for its moment, is moved or called off before it, and is issued at most 5 s after it."""

import contextlib
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import httpx
import psycopg
import pytest

from tests.contract.calls import (
    Key,
    Organization,
    address,
    addresses,
    nothing_changes,
    organization,
    refusal,
    success,
)
from tests.contract.reversing import would_take
from tests.deadline import until
from tests.pace import in_time
from tests.service.up import Service

_LATE_AT_MOST_S = 5.0
_DAY = timedelta(days=1)


def _ahead(ahead: timedelta) -> str:
    return (datetime.now(UTC) + ahead).isoformat()


def _body(ahead: timedelta = _DAY, **fields: Any) -> dict[str, Any]:
    return {"recipient": address(), "amount": 5, "send_at": _ahead(ahead)} | fields


def _schedule(key: Key, body: dict[str, Any] | None = None, **headers: str) -> int:
    """Send for later, and return the id of the batch."""
    return int(success(key.send(body or _body(), **headers), 202)["batch_id"])


def _scheduled(key: Key) -> dict[str, Any]:
    scheduled: dict[str, Any] = key.get("/v1/organization").json()["additional_data"]["scheduled"]
    return scheduled


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# --- Accepted ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{}, {"Prefer": "respond-async"}], ids=["waiting", "not waiting"])
def test_a_send_for_later_is_202_at_once_and_reserves_nothing(service: Service, headers: dict[str, str]) -> None:
    caller = organization(service, 100).live
    send_at = datetime.now(UTC) + _DAY
    body = {"recipients": addresses(3), "amount": 40, "label": "L", "send_at": send_at.isoformat()}
    began = time.monotonic()
    answer = caller.send(body, **headers)
    assert time.monotonic() - began < 20, "who waits is answered after 25 s"
    batch_id = success(answer, 202)["batch_id"]
    assert answer.json()["data"] == {"batch_id": batch_id, "status": "scheduled"}
    assert answer.json()["additional_data"]["batch_id"] == batch_id
    assert answer.headers["Location"] == f"/v1/batches/{batch_id}"
    shown = caller.batch(batch_id)
    assert (shown["status"], shown["final"], shown["issued_at"], shown["transactions"]) == (
        "scheduled",
        False,
        None,
        None,
    )
    assert _moment(shown["send_at"]) == send_at
    assert shown["send_at"].endswith("Z")
    assert shown["label"] == "L"
    assert [one["batch_id"] for one in caller.listed("batches", status="scheduled")] == [batch_id]
    assert caller.listed("batches", status="queued") == []
    assert caller.listed("transactions") == []
    assert caller.balance == 100, "nothing is reserved"


def test_the_organization_shows_what_is_scheduled_in_the_mode_of_the_key(service: Service) -> None:
    made = organization(service, 1_000, sandbox_balance=1_000)
    assert _scheduled(made.live) == {"batches": 0, "amount": 0, "next_at": None}
    later, sooner = datetime.now(UTC) + 2 * _DAY, datetime.now(UTC) + _DAY
    items = [{"email": address(), "amount": amount} for amount in (1, 20, 300)]
    _schedule(made.live, {"items": items, "send_at": sooner.isoformat()})
    last = _schedule(made.live, {"recipients": addresses(2), "amount": 2_000, "send_at": later.isoformat()})
    success(made.live.send({"recipient": address(), "amount": 1}), 201)
    scheduled = _scheduled(made.live)
    assert (scheduled["batches"], scheduled["amount"]) == (2, 4_321)
    assert _moment(scheduled["next_at"]) == sooner
    assert _scheduled(made.development)["batches"] == 0
    success(made.live.cancel(last))
    assert (_scheduled(made.live)["batches"], _scheduled(made.live)["amount"]) == (1, 321)


_BAD = {
    "a number": 1_800_000_000,
    "true": True,
    "an object": {},
    "a list": ["2026-01-31T09:30:00Z"],
    "no time": "tomorrow",
    "a day": (datetime.now(UTC) + _DAY).date().isoformat(),
    "without a zone": (datetime.now(UTC) + _DAY).replace(tzinfo=None).isoformat(),
    "a day that is none": "2027-02-30T09:00:00Z",
    "blanks": " 2027-02-01T09:00:00Z",
    "other digits": "２027-02-01T09:00:00Z",
    "before the year 1": "0001-01-01T00:00:00+23:59",
}


@pytest.mark.parametrize("send_at", _BAD.values(), ids=_BAD)
def test_what_is_no_moment_is_a_fault(acme: Organization, send_at: object) -> None:
    with nothing_changes(acme.live):
        refusal(acme.live.send(_body(send_at=send_at)), 400, "send_at")


_OUT_OF_BOUNDS = [timedelta(days=-400), timedelta(seconds=-1), timedelta(0), timedelta(seconds=50)]
_OUT_OF_BOUNDS += [timedelta(days=366, minutes=1), timedelta(days=5_000)]


@pytest.mark.parametrize("ahead", _OUT_OF_BOUNDS, ids=str)
def test_a_moment_must_be_1_minute_to_366_days_ahead(acme: Organization, ahead: timedelta) -> None:
    with nothing_changes(acme.live):
        for headers in ({}, {"Idempotency_Key": uuid.uuid4().hex}):
            [sentence] = refusal(acme.live.send(_body(ahead), **headers), 400, "send_at")["send_at"]
            assert "1 minute to 366 days ahead" in sentence


@pytest.mark.parametrize("ahead", [timedelta(minutes=1), timedelta(days=366)], ids=str)
def test_a_moment_on_the_bounds_is_taken_in_any_zone(acme: Organization, ahead: timedelta) -> None:
    send_at = (datetime.now(UTC) + ahead).astimezone(timezone(timedelta(hours=-9, minutes=-30)))
    batch_id = _schedule(acme.live, _body(send_at=send_at.isoformat()))
    assert _moment(acme.live.batch(batch_id)["send_at"]) == send_at
    assert acme.live.batch(batch_id)["send_at"].endswith("Z")
    assert "not issued" in would_take(acme.live, {"batch": batch_id})["error"]
    success(acme.live.cancel(batch_id))
    assert "was cancelled" in would_take(acme.live, {"batch": batch_id})["error"]


def test_a_scheduled_batch_is_cancelled_and_not_reversed(acme: Organization) -> None:
    batch_id = _schedule(acme.live)
    answer = acme.live.call("POST", "/v1/points/reverse", json={"batch": batch_id, "reason": "The wrong list"})
    assert "cancel it" in refusal(answer, 409, "batch")["batch"][0]
    assert answer.json()["additional_data"]["code"] == "batch_scheduled"
    assert success(acme.live.cancel(batch_id))["status"] == "cancelled"


def test_an_organization_that_may_not_issue_schedules_nothing_and_may_move_and_cancel(globex: Organization) -> None:
    batch_id, other = _schedule(globex.live), _schedule(globex.live)
    for verb in ("suspend", "disable"):
        with globex.stopped(verb):
            with nothing_changes(globex.live):
                refusal(globex.live.send(_body()), 403, "organization")
            success(globex.live.move(batch_id, {"send_at": _ahead(2 * _DAY)}))
            success(globex.live.cancel({"suspend": batch_id, "disable": other}[verb]))
            batch_id = other


def test_there_are_at_most_1000_scheduled_batches_also_when_many_come_at_once(service: Service) -> None:
    made = organization(service, 10)
    body = _body()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: made.live.send(body), range(1_030)))
    assert Counter(answer.status_code for answer in answers) == {202: 1_000, 403: 30}
    full = next(answer for answer in answers if answer.status_code == 403)
    assert "1000" in refusal(full, 403, "send_at")["send_at"][0]
    assert full.json()["additional_data"] == {"code": "scheduled_limit"}
    assert _scheduled(made.live)["batches"] == 1_000
    _schedule(made.development)
    success(made.live.send({"recipient": address(), "amount": 1}), 201)
    first = next(answer for answer in answers if answer.status_code == 202).json()["data"]["batch_id"]
    success(made.live.move(first, {"send_at": _ahead(2 * _DAY)}))
    success(made.live.cancel(first))
    _schedule(made.live, body, Idempotency_Key="last")
    assert success(made.live.send(body, Idempotency_Key="last"), 202)["status"] == "scheduled", "a repeat needs no room"
    refusal(made.live.send(body), 403, "send_at")


# --- Repeated ---------------------------------------------------------------------------------------------------------


def test_a_repeat_names_the_same_batch_and_another_moment_is_another_body(acme: Organization) -> None:
    key, body = uuid.uuid4().hex, _body()
    batch_id = _schedule(acme.live, body, Idempotency_Key=key)
    elsewhere = _moment(body["send_at"]).astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert _schedule(acme.live, body | {"send_at": elsewhere.isoformat()}, Idempotency_Key=key) == batch_id
    for other in ({"send_at": _ahead(2 * _DAY)}, {"send_at": None}, {"amount": 6}):
        refusal(acme.live.send(body | other, Idempotency_Key=key), 422, "idempotency_key")
    success(acme.live.move(batch_id, {"send_at": _ahead(2 * _DAY)}))
    assert _schedule(acme.live, body, Idempotency_Key=key) == batch_id, "moved, it is still what was sent"
    success(acme.live.cancel(batch_id))


# --- Moved ------------------------------------------------------------------------------------------------------------


def test_a_scheduled_batch_is_moved_as_often_as_one_likes(acme: Organization) -> None:
    batch_id = _schedule(acme.live)
    for ahead in (300 * _DAY, timedelta(minutes=2), timedelta(minutes=2)):
        send_at = datetime.now(UTC) + ahead
        moved = success(acme.live.move(batch_id, {"send_at": send_at.isoformat()}))
        assert (moved["status"], _moment(moved["send_at"])) == ("scheduled", send_at)
        assert acme.live.batch(batch_id) == moved
    success(acme.live.cancel(batch_id))


_FAULTS: list[tuple[Any, list[str]]] = [
    ({}, ["send_at"]),
    ({"send_at": None}, ["send_at"]),
    ({"send_at": "tomorrow"}, ["send_at"]),
    ({"send_at": 5}, ["send_at"]),
    ({"send_at": "2020-01-01T00:00:00Z"}, ["send_at"]),
    ({"send_at": "2020-01-01T00:00:00Z", "amount": 1}, ["send_at", "amount"]),
    ([], ["body"]),
]


@pytest.mark.parametrize(("body", "fields"), _FAULTS, ids=str)
def test_a_body_that_moves_nothing_is_a_400_with_every_fault(acme: Organization, body: Any, fields: list[str]) -> None:
    batch_id = _schedule(acme.live)
    before = acme.live.batch(batch_id)
    refusal(acme.live.move(batch_id, body), 400, *fields)
    assert acme.live.batch(batch_id) == before
    success(acme.live.cancel(batch_id))


# --- Called off -------------------------------------------------------------------------------------------------------


def test_a_scheduled_batch_is_cancelled_once_and_for_all(acme: Organization) -> None:
    key, body = uuid.uuid4().hex, _body()
    before, batch_id = acme.live.balance, _schedule(acme.live, body, Idempotency_Key=key)
    cancelled = success(acme.live.cancel(batch_id))
    assert (cancelled["status"], cancelled["final"], cancelled["issued_at"]) == ("cancelled", True, None)
    assert (cancelled["transactions"], cancelled["counts"], cancelled["refusal"]) == (None, None, None)
    assert success(acme.live.cancel(batch_id)) == cancelled == acme.live.batch(batch_id)
    assert batch_id in [one["batch_id"] for one in acme.live.listed("batches", status="cancelled")]
    assert acme.live.balance == before
    # Its key is not free: a repeat that was on its way must not send what was called off.
    answer = acme.live.send(body, Idempotency_Key=key)
    assert "Idempotency-Key" in refusal(answer, 409, "batch")["batch"][0]
    assert answer.json()["additional_data"] == {"code": "batch_cancelled"}
    refusal(acme.live.send(body | {"amount": 6}, Idempotency_Key=key), 422, "idempotency_key")
    refusal(acme.live.move(batch_id, {"send_at": _ahead(_DAY)}), 409, "batch")


def test_while_another_holds_the_organization_it_is_not_known_what_becomes_of_a_batch(service: Service) -> None:
    caller = organization(service).live
    batch_id = _schedule(caller)
    with psycopg.connect(service.json("status")["database_url"]) as other:
        owner = "SELECT FROM organizations WHERE id = (SELECT organization_id FROM batches WHERE id = %s) FOR UPDATE"
        other.execute(owner, [batch_id])
        answer = caller.cancel(batch_id)
        refusal(answer, 503, "batch")
        assert answer.json()["additional_data"] == {"code": "not_known"}
        assert int(answer.headers["Retry-After"]) > 0
    assert success(caller.cancel(batch_id))["status"] == "cancelled"


def test_who_waits_for_a_batch_that_is_cancelled_is_told_at_once(narrow: Service) -> None:
    acme, key, body = organization(narrow, 10_000), "cancelled", {"recipient": address(), "amount": 5}
    alone = {"recipients": addresses(500), "amount": 1}
    with ThreadPoolExecutor() as pool:
        with narrow.paused("worker"):
            batch_id = acme.live.queue(body, Idempotency_Key=key)
            large = acme.live.queue(alone, Idempotency_Key=f"{key}-large")
            waiting = [pool.submit(acme.live.send, body, Idempotency_Key=key) for _ in range(2)]
            waiting.append(pool.submit(acme.live.send, alone, Idempotency_Key=f"{key}-large"))
            time.sleep(0.5)  # Let them wait; a call that came later is told so, too.
            assert not any(told.done() for told in waiting)
            for one in (batch_id, large):
                assert success(acme.live.cancel(one))["status"] == "cancelled"
            for told in waiting:
                refusal(told.result(), 409, "batch")
            refusal(acme.live.send(body, Idempotency_Key=key, Prefer="respond-async"), 409, "batch")
        success(acme.live.send({"recipient": address(), "amount": 1}), 201)  # The drain has come by.
    assert [acme.live.batch(one)["status"] for one in (batch_id, large)] == ["cancelled", "cancelled"]
    assert acme.live.balance == 10_000 - 1


def test_what_is_issued_or_refused_is_neither_cancelled_nor_moved(narrow: Service) -> None:
    made = organization(narrow, 100)
    issued = made.live.send({"recipient": address(), "amount": 5}).json()["additional_data"]["batch_id"]
    with narrow.paused("worker"):
        refused = made.live.queue({"recipient": address(), "amount": 5})
        assert "cancel" in refusal(made.live.move(refused, {"send_at": _ahead(_DAY)}), 409, "batch")["batch"][0]
        made.change(is_suspended=True)
    until(lambda: made.live.batch(refused)["status"] == "refused", every_s=0.25)
    for batch_id in (issued, refused):
        before = made.live.batch(batch_id)
        answer = made.live.cancel(batch_id)
        assert "reverse" in refusal(answer, 409, "batch")["batch"][0]
        assert answer.json()["additional_data"] == {"code": "batch_final"}
        answer = made.live.move(batch_id, {"send_at": _ahead(_DAY)})
        refusal(answer, 409, "batch")
        assert answer.json()["additional_data"] == {"code": "batch_not_scheduled"}
        assert made.live.batch(batch_id) == before
    assert made.live.balance == 95


def test_what_is_anothers_is_404_and_stays_as_it_is(acme: Organization, globex: Organization) -> None:
    batch_id = _schedule(acme.live)
    before = acme.live.batch(batch_id)
    for key in (acme.development, globex.live, globex.development):
        for number in (batch_id, 999_999_999, 2**63 - 1, 2**63, 0):
            refusal(key.cancel(number), 404, "batch")
            refusal(key.move(number, {"send_at": _ahead(_DAY)}), 404, "batch")
    assert acme.live.batch(batch_id) == before
    refusal(acme.service.call("POST", f"/v1/batches/{batch_id}/cancel"), 401, "authorization")
    refusal(acme.service.call("PATCH", f"/v1/batches/{batch_id}", json={}), 401, "authorization")
    refusal(acme.live.call("POST", f"/v1/batches/{batch_id}/cancel", params={"a": "b"}), 400, "a")
    success(acme.live.cancel(batch_id))


# --- Issued -----------------------------------------------------------------------------------------------------------


def _is_final(key: Key, *batch_ids: int) -> Callable[[], bool]:
    return lambda: all(key.batch(batch_id)["final"] for batch_id in batch_ids)


def _is_issued_in_time(batch: dict[str, Any]) -> bool:
    late_s = (_moment(batch["issued_at"]) - _moment(batch["send_at"])).total_seconds()
    return late_s >= 0 and in_time(late_s, _LATE_AT_MOST_S)


def test_it_is_issued_at_its_moment_by_what_is_so_then(service: Service) -> None:
    one, stopped = [organization(service, balance) for balance in (5, 100)]
    newcomer, minute = address(), timedelta(minutes=1)
    first = _schedule(one.live, {"recipient": newcomer, "amount": 50, "send_at": _ahead(minute)}, Idempotency_Key="a")
    body = _body(minute)
    later, gone = _schedule(one.live, body, Idempotency_Key="b"), _schedule(one.live, _body(minute))
    moved = _schedule(one.live, _body(2 * _DAY))
    success(one.live.move(moved, {"send_at": _ahead(minute)}))
    refused = _schedule(stopped.live, _body(minute), Idempotency_Key="c")
    sandbox = _schedule(one.development, _body(minute))
    success(one.live.cancel(gone))
    # Neither the balance of today, nor an account that is not there yet, nor a suspension that comes counts now.
    one.refill(95)
    service.register(newcomer)
    stopped.change(is_suspended=True)
    until(_is_final(one.live, first, later, moved), every_s=0.25)
    until(_is_final(one.development, sandbox))
    until(_is_final(stopped.live, refused))
    batches = [one.live.batch(batch_id) for batch_id in (first, later, moved)]
    for batch in (*batches, one.development.batch(sandbox)):
        assert batch["status"] == "issued"
        assert _is_issued_in_time(batch)
        assert [row["debited"] for row in batch["transactions"]] == [True]
    assert batches[0]["transactions"][0]["credited"] is True
    assert service.points_of(newcomer) == 50
    assert one.live.balance == 40
    assert one.live.batch(gone)["status"] == "cancelled"
    shown = stopped.live.batch(refused)
    assert (shown["status"], shown["refusal"], stopped.live.balance) == ("refused", "organization_suspended", 100)
    assert _scheduled(one.live) == {"batches": 0, "amount": 0, "next_at": None}
    # A repeat whose moment is past gets the 201, and no fault.
    answer = one.live.send(body, Idempotency_Key="b")
    assert success(answer, 201)["amount"] == 5
    assert answer.headers["Idempotency-Replayed"] == "true"


def _is_ready(service: Service) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return service.call("GET", "/readyz").status_code == 200
    return False


@pytest.mark.parametrize("mode", ["development", pytest.param("live", marks=pytest.mark.long)])
def test_it_is_issued_in_time_though_every_part_was_killed_before(narrow: Service, mode: str) -> None:
    caller: Key = getattr(organization(narrow, 100, sandbox_balance=100), mode)
    # The clock of the sandbox is moved; a live moment has to come.
    ahead = timedelta(seconds=75) if mode == "live" else _DAY
    ids = [_schedule(caller, _body(ahead + timedelta(seconds=number))) for number in range(3)]
    for part in ("worker", "redis", "beat", "web", "postgresql"):
        narrow.kill(part)
    until(lambda: _is_ready(narrow), every_s=0.2)
    if mode == "development":
        for batch_id in (_schedule(caller, _body(timedelta(hours=1))), ids[0]):
            now = _moment(caller.batch(batch_id)["send_at"]) - timedelta(seconds=1)
            success(caller.call("POST", "/v1/sandbox/clock", json={"now": now.isoformat()}))
            until(_is_final(caller, batch_id), every_s=0.25)  # When the first is issued, every part is up again.
    until(_is_final(caller, *ids), every_s=0.25)
    for batch_id in ids:
        batch = caller.batch(batch_id)
        assert batch["status"] == "issued"
        assert _is_issued_in_time(batch)
    assert caller.balance == (85 if mode == "live" else 80)
