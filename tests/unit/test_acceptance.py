"""What became of a send, as a row of the accepting statement tells it, and how its arrays are written."""

import json
from typing import Any

import pytest

from app import acceptance
from app.acceptance import Acceptance
from app.arrays import text_array
from app.batches import ISSUED, QUEUED
from app.errors import IdempotencyKeyReused, OrganizationDisabled, OrganizationSuspended
from tests.unit.rows import MOMENT


def outcome(**changes: Any) -> object:
    row = {
        "place": 0,
        "api_key_id": 1,
        "key_use_is_old": False,
        "organization_id": 7,
        "is_disabled": False,
        "is_suspended": False,
        "known_id": None,
        "known_status": None,
        "is_same": None,
        "written_id": None,
        "created_at": MOMENT,
    }
    return acceptance._outcome(acceptance._Row(**(row | changes)))


def test_a_batch_that_was_written_is_queued_and_its_own() -> None:
    assert outcome(written_id=42) == Acceptance(1, False, 7, 42, QUEUED, existed=False, created_at=MOMENT)


def test_a_batch_that_the_key_names_is_joined_or_replayed_as_it_is() -> None:
    for status in (ISSUED, QUEUED):
        joined = outcome(known_id=41, known_status=status, is_same=True)
        assert joined == Acceptance(1, False, 7, 41, status, existed=True, created_at=MOMENT)


@pytest.mark.parametrize("flag", ["is_disabled", "is_suspended"])
def test_a_replay_does_not_ask_whether_the_organization_may_issue_today(flag: str) -> None:
    replay = outcome(known_id=41, known_status=ISSUED, is_same=True, **{flag: True})
    assert isinstance(replay, Acceptance)
    assert replay.batch_id == 41


@pytest.mark.parametrize("flag", ["is_disabled", "is_suspended"])
def test_another_body_is_said_before_the_organization_is_asked_about(flag: str) -> None:
    assert type(outcome(known_id=41, known_status=ISSUED, is_same=False, **{flag: True})) is IdempotencyKeyReused


def test_an_organization_that_may_not_issue_is_refused_and_disabled_wins() -> None:
    assert type(outcome(is_suspended=True)) is OrganizationSuspended
    assert type(outcome(is_disabled=True)) is OrganizationDisabled
    assert type(outcome(is_disabled=True, is_suspended=True)) is OrganizationDisabled


def test_a_key_that_was_taken_in_this_moment_is_to_be_asked_about_again() -> None:
    assert outcome() is None


@pytest.mark.parametrize(
    "texts",
    [
        ["a@example.com"],
        ["a@example.com", "b@example.com"],
        ['"quoted"@example.com', "b@example.com"],
        ["back\\slash@example.com", '","', "{}", "null", "ä@bücher.example", " "],
        ['"'],
        ["\\"],
        ['a","b'],
    ],
)
def test_an_array_is_written_so_that_no_character_of_an_address_ends_it(texts: list[str]) -> None:
    written = text_array(texts)
    assert (written[0], written[-1]) == ("{", "}")
    assert json.loads(f"[{written[1:-1]}]") == texts  # PostgreSQL quotes an array's elements as JSON does, for these.
