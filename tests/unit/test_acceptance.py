"""What became of a send, as a row of the accepting statement tells it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from app.batches import accept as acceptance
from app.batches.accept import Acceptance, Send
from app.batches.read import ISSUED, QUEUED
from app.batches.request import IssueRequest
from app.errors import IdempotencyKeyReused, InvalidRequest, OrganizationDisabled, OrganizationSuspended, ScheduledLimit
from app.values.send_at import EARLIEST, LATEST
from tests.unit.rows import MOMENT

_ROW = {
    "place": 0,
    "is_disabled": False,
    "is_suspended": False,
    "is_same": None,
    "now": MOMENT,
    "has_room": True,
    "api_key_id": 1,
    "key_use_is_old": False,
    "organization_id": 7,
    "batch_id": None,
    "status": QUEUED,
    "existed": False,
    "created_at": MOMENT,
}
_SEND = Send(
    b"hash", IssueRequest(emails=["ann@x.com"], email_keys=["ann@x.com"], amount=1, atomic=False, label=None), None
)


def outcome(send_at: datetime | None = None, /, **changes: Any) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acceptance, "fetch_all", lambda *_: [tuple((_ROW | changes).values())])
        [found] = acceptance.accept(Mock(), [_SEND._replace(request=replace(_SEND.request, send_at=send_at))])
    return found


def test_a_batch_that_was_written_is_queued_and_its_own() -> None:
    assert outcome(batch_id=42) == Acceptance(1, False, 7, 42, QUEUED, existed=False, created_at=MOMENT)


def test_a_batch_that_the_key_names_is_joined_or_replayed_as_it_is() -> None:
    for status in (ISSUED, QUEUED):
        joined = outcome(batch_id=41, status=status, is_same=True, existed=True)
        assert joined == Acceptance(1, False, 7, 41, status, existed=True, created_at=MOMENT)


@pytest.mark.parametrize("flag", ["is_disabled", "is_suspended"])
def test_a_replay_does_not_ask_whether_the_organization_may_issue_today(flag: str) -> None:
    replay = outcome(batch_id=41, status=ISSUED, is_same=True, existed=True, **{flag: True})
    assert isinstance(replay, Acceptance)
    assert replay.batch_id == 41


@pytest.mark.parametrize("flag", ["is_disabled", "is_suspended"])
def test_another_body_is_said_before_the_organization_is_asked_about(flag: str) -> None:
    found = outcome(batch_id=41, status=ISSUED, is_same=False, existed=True, **{flag: True})
    assert type(found) is IdempotencyKeyReused


def test_an_organization_that_may_not_issue_is_refused_and_disabled_wins() -> None:
    assert type(outcome(is_suspended=True)) is OrganizationSuspended
    assert type(outcome(is_disabled=True)) is OrganizationDisabled
    assert type(outcome(is_disabled=True, is_suspended=True)) is OrganizationDisabled


def test_a_key_that_was_taken_in_this_moment_is_to_be_asked_about_again() -> None:
    assert outcome() is None


_MICROSECOND = timedelta(microseconds=1)


@pytest.mark.parametrize("ahead", [EARLIEST, LATEST])
def test_a_moment_on_its_bounds_is_taken(ahead: timedelta) -> None:
    assert isinstance(outcome(MOMENT + ahead, batch_id=42), Acceptance)


@pytest.mark.parametrize(
    ("ahead", "seen"),
    [(EARLIEST - _MICROSECOND, "sooner"), (LATEST + _MICROSECOND, "later"), (-_MICROSECOND, "past")],
)
def test_a_moment_out_of_bounds_is_a_fault_of_a_new_batch_before_anything_else(ahead: timedelta, seen: str) -> None:
    found = outcome(MOMENT + ahead, is_disabled=True, has_room=True)
    assert isinstance(found, InvalidRequest)
    [sentence] = found.faults["send_at"]
    assert sentence.endswith(f"is {seen}.")


def test_a_moment_that_is_past_by_now_does_not_hold_up_a_replay() -> None:
    assert isinstance(outcome(MOMENT - _MICROSECOND, batch_id=41, is_same=True, existed=True), Acceptance)


def test_where_there_is_no_room_the_limit_is_told_but_an_organization_that_may_not_issue_first() -> None:
    send_at = MOMENT + LATEST
    assert type(outcome(send_at, has_room=False)) is ScheduledLimit
    assert type(outcome(send_at, has_room=False, is_suspended=True)) is OrganizationSuspended
