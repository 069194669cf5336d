"""What is told and counted of a round of a drain: every batch, recipient and point under its mode and its end."""

from collections.abc import MutableMapping
from typing import Any

from app.ledger.issue import Outcome
from app.ledger.report import counts_of, report

_PAID = Outcome(batch_id=1, sandbox=False, recipients=3, debited_count=3, debited_amount=30)
_PARTLY = Outcome(batch_id=2, sandbox=False, recipients=5, debited_count=2, debited_amount=14)
_SANDBOX = Outcome(batch_id=3, sandbox=True, recipients=4, debited_count=1, debited_amount=9)
_REFUSED = Outcome(batch_id=4, sandbox=True, recipients=2, debited_count=None, debited_amount=None)


def test_each_batch_recipient_and_point_is_counted_under_its_mode_and_its_end() -> None:
    counts = counts_of([_PAID, _PARTLY, _SANDBOX, _REFUSED], seconds=0.02)
    families = ("points_final_batches", "points_recipients", "points_issued_points", "points_drains")
    assert {field: count for field, count in counts.items() if field.split("|")[0] in families} == {
        "points_drains|done": 1,
        "points_final_batches|live|issued": 2,
        "points_final_batches|sandbox|issued": 1,
        "points_final_batches|sandbox|refused": 1,
        "points_recipients|live|true": 5,
        "points_recipients|live|false": 3,
        "points_recipients|sandbox|true": 1,
        "points_recipients|sandbox|false": 3,
        "points_issued_points|live": 44,
        "points_issued_points|sandbox": 9,
    }
    assert (counts["points_drain_batches|sum"], counts["points_drain_recipients|sum"]) == (4, 14)
    assert (counts["points_issue_seconds|0.025"], counts["points_issue_seconds|sum"]) == (1, 0.02)


def test_a_round_that_found_nothing_to_issue_is_not_counted() -> None:
    assert counts_of([], seconds=0.02) == {}


def test_one_line_names_every_batch_of_a_round(events: list[MutableMapping[str, Any]]) -> None:
    report(7, [_PAID, _PARTLY, _SANDBOX, _REFUSED], seconds=0.0212345678)
    [line] = events
    assert (line["event"], line["organization_id"], line["batch_ids"]) == ("drained", 7, [1, 2, 3, 4])
    assert (line["refused"], line["recipients"], line["points"], line["seconds"]) == (1, 14, 53, 0.021235)
