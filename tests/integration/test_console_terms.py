"""When a list of the console is issued, and whether only to all: kept with the list, and bound by its confirmation."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.batches.schedule import release_due
from app.ledger.refill import refill
from app.postgres.database import transaction
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.test_console_send import checked, confirm, hidden, rows_of, value
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")

_ZONE = "Europe/Berlin"


@pytest.fixture
def ann(app: Flask) -> Visitor:
    """Sign in a sender in Berlin, of an organization with some points."""
    ann = visitor(app, books.make_organization(1_000), "sender")
    assert ann.post("/account/zone", of="/account", zone=_ZONE).status_code == 303
    return ann


def _in_berlin(**ahead: float) -> tuple[dict[str, str], str]:
    """Return the fields of a later time, and how the pages write it."""
    local = (datetime.now(UTC) + timedelta(**ahead)).astimezone(ZoneInfo(_ZONE))
    hours = local.utcoffset() or timedelta()
    fields = {"when": "later", "day": f"{local:%Y-%m-%d}", "clock": f"{local:%H:%M}"}
    return fields, f"{local:%Y-%m-%d %H:%M} UTC+{hours.seconds // 3_600}"


def _eight(ann: Visitor, amount: int = 10) -> str:
    return checked(ann, "email\n" + "".join(f"p{i}@example.com\n" for i in range(8)), amount=str(amount))


def _settled(ann: Visitor, path: str, **fields: str) -> TestResponse:
    answer = ann.post(f"{path}/cost", of=f"{path}/cost", **fields)
    assert (answer.status_code, answer.location) == (303, f"{path}/confirm"), words_of(answer)
    return ann.get(answer.location)


def _drained(ann: Visitor) -> list[int]:
    books.execute("UPDATE batches SET send_at = now() WHERE status = 'scheduled'")
    with transaction() as connection:
        release_due(connection, at_most=100)
    return books.drain_all(ann.organization_id)


def test_a_list_is_scheduled_for_a_time_of_the_members_zone(ann: Visitor) -> None:
    path, (fields, written) = _eight(ann), _in_berlin(days=2)
    page = _settled(ann, path, **fields)
    assert f"When {written}, in the time zone {_ZONE}" in words_of(page)
    assert f"Schedule 80 points to 8 recipients for {written}" in words_of(page)
    assert f'value="{fields["clock"]}"' in ann.get(f"{path}/cost").text
    assert confirm(ann, path).location == f"{path}/outcome"
    outcome = ann.get(f"{path}/outcome")
    assert f"80 points to 8 recipients are scheduled for {written}" in words_of(outcome)
    assert 'data-over="yes"' in outcome.text
    assert value("SELECT status FROM batches") == "scheduled"
    local = datetime.fromisoformat(f"{fields['day']}T{fields['clock']}").replace(tzinfo=ZoneInfo(_ZONE))
    assert value("SELECT send_at FROM batches") == local.astimezone(UTC)
    assert f", for {local.astimezone(UTC):%Y-%m-%d %H:%M} UTC" in words_of(ann.get("/activity"))
    assert books.drain_all(ann.organization_id) == []
    assert len(_drained(ann)) == 1
    assert "80 points issued to 8 recipients." in words_of(ann.get(f"{path}/outcome"))


@pytest.mark.parametrize(
    ("fields", "beside"),
    [
        ({"day": "", "clock": "09:30"}, "Enter a day of the calendar, such as 2026-01-31."),
        ({"day": "2026-02-30", "clock": "09:30"}, "Enter a day of the calendar"),
        ({"day": "2999-01-01", "clock": "9.30"}, "Enter a time from 00:00 to 23:59"),
        ({"day": "2999-01-01", "clock": "09:30"}, "must be 1 minute to 366 days ahead, but is later."),
        ({"day": "2026-01-01", "clock": "09:30"}, "must be 1 minute to 366 days ahead, but is past."),
        ({"day": "2026-03-29", "clock": "02:30"}, "There is no 02:30 on 2026-03-29 in Europe/Berlin"),
        ({"day": "2026-10-25", "clock": "02:30"}, "02:30 comes twice on 2026-10-25 in Europe/Berlin"),
    ],
)
def test_a_time_that_is_none_is_a_sentence_and_keeps_the_list_as_it_was(
    ann: Visitor, fields: dict[str, str], beside: str
) -> None:
    path = _eight(ann)
    answer = ann.post(f"{path}/cost", of=f"{path}/cost", when="later", **fields)
    assert answer.status_code == 400
    assert beside in words_of(answer)
    assert "When Now" in words_of(ann.get(f"{path}/confirm"))


@pytest.mark.parametrize("changed", ["time", "now", "atomic", "zone"])
def test_a_time_zone_or_rule_that_another_window_has_changed_is_shown_before_it_counts(
    ann: Visitor, changed: str
) -> None:
    path = _eight(ann)
    first = hidden(_settled(ann, path, **_in_berlin(days=2)[0]))
    if changed == "zone":
        ann.post("/account/zone", of="/account", zone="Asia/Tokyo")
    else:
        fields = {"time": _in_berlin(days=3)[0], "now": {"when": "now"}, "atomic": _in_berlin(days=2)[0]}[changed]
        _settled(ann, path, **fields, **({"atomic": "y"} if changed == "atomic" else {}))
    refused = ann.client.post(f"{path}/confirm", data=first)
    assert refused.status_code == 409
    assert "The list was changed since you looked" in refused.text
    assert value("SELECT count(*) FROM batches") == 0
    assert ann.client.post(f"{path}/confirm", data=hidden(refused)).status_code == 303
    assert value("SELECT status FROM batches") == ("queued" if changed == "now" else "scheduled")


def test_a_button_for_now_issues_nothing_once_the_list_is_for_later(ann: Visitor) -> None:
    path = _eight(ann)
    form = hidden(ann.get(f"{path}/confirm"))
    _settled(ann, path, **_in_berlin(hours=3)[0])
    assert ann.client.post(f"{path}/confirm", data=form).status_code == 409
    assert value("SELECT count(*) FROM batches") == 0


def test_a_time_that_passes_while_the_page_is_open_is_said_and_schedules_nothing(ann: Visitor) -> None:
    path = _eight(ann)
    form = hidden(_settled(ann, path, **_in_berlin(hours=3)[0]))
    books.execute("UPDATE uploads SET send_at = now() - interval '1 minute'")
    assert "must be 1 minute to 366 days ahead, but is past" in words_of(ann.get(f"{path}/confirm"))
    assert "Schedule" not in ann.get(f"{path}/confirm").text
    assert ann.client.post(f"{path}/confirm", data=form).status_code == 409
    assert value("SELECT count(*) FROM batches") == 0


def test_a_list_may_be_scheduled_before_the_refill_that_pays_it(ann: Visitor) -> None:
    path = _eight(ann, amount=1_000_000)
    assert "too low for anybody" in words_of(ann.get(f"{path}/confirm"))
    fields, written = _in_berlin(days=1)
    page = words_of(_settled(ann, path, **fields))
    assert f"Schedule 8,000,000 points to 8 recipients for {written}" in page
    assert "0 of 8 recipients, 0 points, as it is now" in page
    assert confirm(ann, path).status_code == 303
    with transaction() as connection:
        refill(connection, ann.organization_id, 7_999_000)
    _drained(ann)
    assert "8,000,000 points issued to 8 recipients." in words_of(ann.get(f"{path}/outcome"))


def test_all_or_nobody_issues_nothing_until_the_balance_pays_everybody(ann: Visitor) -> None:
    path = _eight(ann, amount=300)
    some = ann.get(f"{path}/confirm")
    assert "Issue 900 points to 3 of 8 recipients" in words_of(some)
    none = _settled(ann, path, when="now", atomic="y")
    assert "The balance pays 3 of 8 recipients, so with “all or nobody” nothing is issued." in words_of(none)
    assert 'class="issue"' not in none.text
    assert ann.client.post(f"{path}/confirm", data=hidden(some)).status_code == 409
    with transaction() as connection:
        refill(connection, ann.organization_id, 1_400)
    assert "Nobody is debited: all or nobody" in words_of(ann.get(f"{path}/confirm"))
    assert confirm(ann, path).status_code == 303
    assert value("SELECT atomic FROM batches") is True
    books.drain_all(ann.organization_id)
    assert "2,400 points issued to 8 recipients." in words_of(ann.get(f"{path}/outcome"))


def test_a_scheduled_batch_of_all_or_nobody_pays_nobody_from_a_low_balance(ann: Visitor) -> None:
    path = _eight(ann, amount=300)
    _settled(ann, path, **_in_berlin(days=1)[0], atomic="y")
    assert confirm(ann, path).status_code == 303
    _drained(ann)
    assert [row["state"] for row in rows_of(ann.get(f"{path}/outcome.csv"))] == ["unpaid"] * 8
    assert books.balance_of(ann.organization_id) == 1_000


def test_a_list_of_several_batches_is_scheduled_whole_or_not_at_all(
    ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "3")
    monkeypatch.setattr("app.batches.accept.SCHEDULED_MAX", 3)
    forget_everything()
    path = _eight(ann)
    _settled(ann, path, **_in_berlin(days=1)[0])
    assert confirm(ann, path).status_code == 303
    other = checked(ann, "email\nx@example.com\n", amount="1")
    _settled(ann, other, **_in_berlin(days=1)[0])
    refused = confirm(ann, other)
    assert refused.status_code == 409
    assert "already 3 scheduled batches" in words_of(refused)
    assert value("SELECT count(*) FROM batches") == 3


def _scheduled(ann: Visitor) -> int:
    """Schedule a list for two days ahead; return its batch."""
    path = checked(ann, "email,amount\na@example.com,5\nb@example.com,7\n", label="Spring")
    _settled(ann, path, **_in_berlin(days=2)[0])
    assert confirm(ann, path).status_code == 303
    return int(str(value("SELECT max(id) FROM batches")))


def test_a_scheduled_batch_shows_its_points_and_is_moved_once(ann: Visitor) -> None:
    batch_id, (fields, written) = _scheduled(ann), _in_berlin(days=5)
    fields.pop("when")
    assert "Points to issue 12" in words_of(ann.get(f"/batches/{batch_id}"))
    assert "12 points for 2 recipients" in words_of(ann.get(f"/batches/{batch_id}/cancel"))
    move = f"/batches/{batch_id}/move"
    for _ in range(2):
        assert ann.post(move, of=move, **fields).status_code == 303
    assert f"scheduled for {written}. Nothing is debited until then" in words_of(ann.get(f"/batches/{batch_id}"))
    assert words_of(ann.get("/activity")).count(f"Moved live batch {batch_id}: to") == 1
    assert value("SELECT count(*) FROM unnumbered_events WHERE type = 'batch.scheduled'") == 2
    for wrong, beside in ((fields | {"clock": "25:00"}, "from 00:00 to 23:59"), (_in_berlin(days=-1)[0], "is past")):
        refused = ann.post(move, of=move, **wrong)
        assert refused.status_code == 400
        assert beside in words_of(refused)
    assert written in words_of(ann.get(f"/batches/{batch_id}"))


def test_a_batch_that_is_no_longer_scheduled_is_not_moved(ann: Visitor) -> None:
    batch_id, (fields, _) = _scheduled(ann), _in_berlin(days=5)
    move = f"/batches/{batch_id}/move"
    form = hidden(ann.get(move))
    _drained(ann)
    assert ann.client.post(f"/console/live{move}", data=form | fields).location == f"/console/live/batches/{batch_id}"
    page = words_of(ann.get(f"/batches/{batch_id}"))
    assert "is no longer scheduled, so its time stays as it is" in page
    assert "Move it" not in page
    assert ann.get(move).status_code == 302
