"""Cursors: they lead back to the place they were made of, in the same list with the same filters, and nowhere else."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.pages import cursors
from app.pages.filters import CursorPosition, Filters

MOMENT = datetime(2026, 1, 31, 9, 30, 0, 482913, tzinfo=UTC)
FILTERS = Filters(organization_id=7, sandbox=False, email_key="ada@example.com", created_from=MOMENT, debited=True)
CURSOR = cursors.encode("transactions", FILTERS, CursorPosition(MOMENT, 131_072))

ids = st.integers(min_value=0, max_value=2**63 - 1)
moments = st.none() | st.datetimes(timezones=st.just(UTC))


@given(moments, ids)
def test_a_cursor_leads_back_to_its_place(moment: datetime | None, row_id: int) -> None:
    place = CursorPosition(moment, row_id)
    cursor = cursors.encode("batches", FILTERS, place)
    assert cursors.has_the_form(cursor)
    assert cursors.decode("batches", FILTERS, cursor) == place


@pytest.mark.parametrize(
    "other",
    [
        replace(FILTERS, organization_id=8),
        replace(FILTERS, sandbox=True),
        replace(FILTERS, email_key=None),
        replace(FILTERS, batch_id=1),
        replace(FILTERS, created_from=MOMENT + timedelta(microseconds=1)),
        replace(FILTERS, created_from=None, created_to=MOMENT),
        replace(FILTERS, debited=False),
        replace(FILTERS, debited=None, credited=True),
        replace(FILTERS, debited=None, allocated=True),
    ],
    ids=str,
)
def test_a_cursor_fits_no_other_filters(other: Filters) -> None:
    assert cursors.decode("transactions", other, CURSOR) is None


def test_a_cursor_fits_no_other_list() -> None:
    assert cursors.decode("batches", FILTERS, CURSOR) is None


def test_a_time_in_another_zone_is_the_same_filter() -> None:
    elsewhere = replace(FILTERS, created_from=MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30))))
    assert cursors.decode("transactions", elsewhere, CURSOR) == CursorPosition(MOMENT, 131_072)


@pytest.mark.parametrize("place", range(len(CURSOR)))
def test_a_cursor_with_one_character_changed_is_none(place: int) -> None:
    changed = CURSOR[:place] + ("B" if CURSOR[place] == "A" else "A") + CURSOR[place + 1 :]
    assert cursors.decode("transactions", FILTERS, changed) is None


@given(st.text())
def test_any_other_text_is_no_cursor(text: str) -> None:
    assert cursors.decode("transactions", FILTERS, text) is None


@given(st.binary(min_size=28, max_size=28))
def test_any_other_bytes_are_no_cursor(content: bytes) -> None:
    assert cursors.decode("transactions", FILTERS, cursors._to_text(content)) is None


@pytest.mark.parametrize("moment", [-(2**63) + 1, 2**63 - 1, 253_402_300_800_000_000])
def test_a_forged_time_that_no_calendar_has_is_none(moment: int) -> None:
    digest = cursors._digest("batches", FILTERS, moment, 1)
    assert cursors.decode("batches", FILTERS, cursors._to_text(cursors._FORMAT.pack(moment, 1, digest))) is None


def test_a_forged_place_that_no_row_has_is_none() -> None:
    moment = cursors._NO_MOMENT
    digest = cursors._digest("batches", FILTERS, moment, -1)
    assert cursors.decode("batches", FILTERS, cursors._to_text(cursors._FORMAT.pack(moment, -1, digest))) is None
