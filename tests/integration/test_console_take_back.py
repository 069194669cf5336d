"""Taking back a part of a batch, with the figures first; and holding points for longer."""

from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import Connection
from werkzeug.test import TestResponse

from app import api_keys
from app.reversals.accept import accept
from app.reversals.request import ReverseRequest
from app.values.ids import POSITIONS
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.console_lists import hidden, sent, value
from tests.integration.races import behind
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")

_EMAILS = ["a@example.com", "b@example.com", "c@example.com", "d@example.com"]


def _issued(ann: Visitor) -> str:
    """Issue 20 points to each of four recipients; return the path of taking them back."""
    return f"/console/live/batches/{books.issue_now(ann.organization_id, _EMAILS, 20)}/take-back"


def _press(ann: Visitor, page: TestResponse, path: str, **fields: object) -> TestResponse:
    return ann.client.post(path, data=hidden(page) | {"reason": "Twice in the list"} | fields)


def _taken(ann: Visitor, answer: TestResponse) -> str:
    assert answer.status_code == 303, words_of(answer)
    books.drain_all(ann.organization_id)
    return words_of(ann.get(answer.location))


def test_chosen_recipients_lose_their_points_in_whole_or_in_part_after_the_figures_were_shown(ann: Visitor) -> None:
    path = _issued(ann)
    assert f'href="{path}?recipient=3"' in ann.get(path.removesuffix("/take-back")).text
    one = ann.get(f"{path}?recipient=3")
    assert "Take back 20 points" in words_of(one)
    for fields, told, points in (
        ({"recipient": ["2", "4"]}, "2 chosen recipients", 40),
        ({"recipient": "1", "amount": "15"}, "15 points from each of 1 chosen recipient", 15),
        ({"amount": "15"}, "1 recipient with fewer points left: nothing is taken from them.", 15),
    ):
        before = value("SELECT count(*) FROM reversals")
        shown = _press(ann, ann.get(path), path, show="figures", **fields)
        assert told in words_of(shown)
        assert f"Take back {points} points" in words_of(shown)
        assert value("SELECT count(*) FROM reversals") == before
        assert f"Points taken back {points}" in _taken(ann, _press(ann, shown, path, **fields))
    left = value("SELECT string_agg(coalesce(points_left, 20)::text, ' ' ORDER BY position) FROM transactions")
    assert left == "5 0 5 0"
    assert books.balance_of(ann.organization_id) == 990
    wrong = _press(ann, ann.get(path), path, amount="none")
    assert wrong.status_code == 400
    assert "must be a whole number of at least 1" in words_of(wrong)


def test_a_choice_that_was_not_shown_takes_nothing(ann: Visitor) -> None:
    path = _issued(ann)
    all_of_it = ann.get(path)
    for fields in ({"recipient": "1"}, {"amount": "5"}):
        refused = _press(ann, all_of_it, path, **fields)
        assert refused.status_code == 409
        assert "were changed since you looked" in words_of(refused)
    shown = _press(ann, all_of_it, path, show="figures", recipient=["1", "2"])
    books.reverse_now(ann.organization_id, transaction_ids=[int(path.split("/")[-2]) * POSITIONS])
    refused = _press(ann, shown, path, recipient=["1", "2"])
    assert refused.status_code == 409
    assert "Take back 20 points" in words_of(refused)
    assert value("SELECT count(*) FROM reversals") == 1
    assert "Points taken back 20" in _taken(ann, _press(ann, refused, path, recipient=["1", "2"]))
    assert ann.get(f"{path}?recipient=5").status_code == 404


def test_two_people_who_take_a_part_at_once_take_it_once(app: Flask, ann: Visitor) -> None:
    path, bob = _issued(ann), visitor(app, ann.organization_id, "approver")
    shown = [_press(who, who.get(path), path, show="figures", amount="5") for who in (ann, bob)]
    first = _press(ann, shown[0], path, amount="5")
    refused = _press(bob, shown[1], path, amount="5")
    assert refused.status_code == 409
    told = words_of(refused)
    assert "points were taken back by Ann Sender (reversal 2, not done)" in told
    assert "1 reversal of the same recipients is not done yet" in told
    assert "Points taken back 20" in _taken(ann, first)
    left = value("SELECT string_agg(points_left::text, ' ') FROM transactions")
    assert left == "15 15 15 15"
    too_many = words_of(_press(bob, bob.get(path), path, show="figures", amount="16"))
    assert "Nobody has 16 points left: the most that one has is 15." in too_many


def test_a_program_that_takes_back_at_the_same_moment_is_seen(ann: Visitor, many_connections: None) -> None:
    path = _issued(ann)
    shown = _press(ann, ann.get(path), path, show="figures", amount="5")
    batch_id = int(path.split("/")[-2])
    by_program = ReverseRequest(batch_id=batch_id, transaction_ids=None, amount=5, atomic=False, reason="x")

    def accepted_not_committed(connection: Connection) -> None:
        who = api_keys.get_caller(connection, books.key_of(connection, ann.organization_id))
        accept(connection, who, by_program, None)

    refused = behind(accepted_not_committed, lambda: _press(ann, shown, path, amount="5"))
    assert refused.status_code == 409
    assert "points were taken back by the API (reversal 2, not done)" in words_of(refused)


def test_nothing_is_taken_if_the_sum_has_changed_when_the_turn_of_the_reversal_comes(ann: Visitor) -> None:
    path = _issued(ann)
    answer = _press(ann, _press(ann, ann.get(path), path, show="figures", recipient="1"), path, recipient="1")
    books.execute("UPDATE transactions SET points_left = 19 WHERE position = 0")
    assert "a different sum would have come back" in _taken(ann, answer)


def test_one_form_takes_back_once_and_says_so_when_it_is_used_for_another_choice(ann: Visitor) -> None:
    path = _issued(ann)
    shown = _press(ann, ann.get(path), path, show="figures", recipient="1")
    answers = [_press(ann, shown, path, recipient="1") for _ in range(2)]
    assert len({answer.location for answer in answers}) == 1
    other = _press(ann, shown, path, recipient="2")
    assert other.status_code == 409
    assert "has taken points back already" in words_of(other)
    assert value("SELECT count(*) FROM reversals") == 1
    _taken(ann, answers[0])
    assert "Points taken back 20" in _taken(ann, _press(ann, other, path, recipient="2"))


def test_recipients_of_a_long_batch_are_chosen_page_by_page(ann: Visitor) -> None:
    batch_id = books.issue_now(ann.organization_id, [f"p{i}@example.com" for i in range(150)], 1)
    path = f"/console/live/batches/{batch_id}/take-back"
    second = _press(ann, ann.get(path), path, show="100", recipient="7")
    assert "p100@example.com" in second.text
    assert 'type="hidden" name="recipient" value="7"' in second.text
    shown = _press(ann, second, path, show="figures", recipient=["7", "150"])
    assert "2 chosen recipients" in words_of(shown)
    assert "Points taken back 2" in _taken(ann, _press(ann, shown, path, recipient=["7", "150"]))


def test_held_points_are_held_for_longer_once(app: Flask, ann: Visitor) -> None:
    batch_id = books.queue_batch(ann.organization_id, ["a@example.com", "b@example.com"], 20, hold_days=10)
    books.drain_all(ann.organization_id)
    books.reverse_now(ann.organization_id, transaction_ids=[batch_id * POSITIONS], amount=5)
    path = f"/console/live/transactions/{batch_id * POSITIONS}/hold"
    assert f'href="{path}"' in ann.get("/held").text
    page = ann.get(path)
    assert "15 points for a@example.com are held until" in words_of(page)
    until = (datetime.now(UTC) + timedelta(days=90)).replace(second=0, microsecond=0)
    fields = {"day": f"{until:%Y-%m-%d}", "clock": f"{until:%H:%M}"}
    for _ in range(2):
        assert ann.client.post(path, data=hidden(page) | fields).location == f"/console/live/batches/{batch_id}"
    assert f"until {until:%Y-%m-%d %H:%M} UTC" in words_of(ann.get(f"/batches/{batch_id}"))
    assert value("SELECT held_until FROM transactions WHERE position = 0") == until
    assert words_of(ann.get("/activity")).count(f"Held live transaction {batch_id * POSITIONS} for longer") == 1
    for wrong, beside in (
        ({"day": "2026-01-01", "clock": "09:30"}, "The end must be later than it is."),
        ({"day": "2999-01-01", "clock": "09:30"}, "The end must be at most 3,650 days ahead."),
        ({"day": "", "clock": "09:30"}, "Enter a day of the calendar"),
    ):
        refused = ann.client.post(path, data=hidden(page) | wrong)
        assert refused.status_code == 400
        assert beside in words_of(refused)


def test_points_that_are_not_held_or_held_for_ever_are_not_held_for_longer(ann: Visitor) -> None:
    batch_id = books.issue_now(ann.organization_id, ["a@example.com"], 20)
    assert "Hold longer" not in ann.get("/held").text
    answer = ann.get(f"/transactions/{batch_id * POSITIONS}/hold")
    assert answer.location == f"/console/live/batches/{batch_id}"
    assert "there is no end to move" in words_of(ann.get(f"/batches/{batch_id}"))


def test_a_list_is_taken_back_whole_with_the_points_that_its_page_showed(
    ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    of_list = sent(ann, "email\n" + "\n".join(f"p{number}@example.com" for number in range(5)), amount="20")
    path, batches = f"{of_list}/take-back", books.values("SELECT unnest(batch_ids) FROM uploads")
    books.reverse_now(ann.organization_id, batch_id=batches[1])
    page = ann.get(path)
    assert "All the points that are left of 2 of the 3 batches of this list" in words_of(page)
    assert "Take back 60 points" in words_of(page)
    for reason, told in (("", "Enter a reason"), ("x" * 256, "at most 255 characters")):
        assert told in words_of(_press(ann, page, path, reason=reason))
    books.queue_reversal(ann.organization_id, batch_id=batches[2])  # It is not done yet, and counts.
    refused = _press(ann, page, path)
    assert refused.status_code == 400
    assert "Other points can be taken back than you have seen, so nothing was taken back. Look" in words_of(refused)
    assert value("SELECT count(*) FROM reversals") == 2
    answer = _press(ann, refused, path)
    assert "1 batch of this list will be taken back in a moment." in _taken(ann, answer)
    assert books.balance_of(ann.organization_id) == 1_000
    assert words_of(ann.get(f"{of_list}/outcome")).count("Twice in the list") == 1
    assert ann.get(path).location == f"{of_list}/outcome"
    assert "Nothing is left of this list that could be taken back." in words_of(ann.get(f"{of_list}/outcome"))
