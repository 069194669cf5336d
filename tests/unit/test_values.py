"""Keys, names, moments and cursors: what is one, and what is not."""

import string
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from app.pages import cursors
from app.pages.filters import CursorPosition, Filters
from app.values.key_hashes import hash_key, is_well_formed, new_key, new_platform_key
from app.values.timestamps import timestamp

_LIVE = new_key(sandbox=False).text
_DEVELOPMENT = new_key(sandbox=True).text
_ALPHANUMERIC = string.ascii_letters + string.digits


def test_a_platform_key_has_the_form_of_the_others_and_its_own_prefix() -> None:
    key = new_platform_key()
    assert key.text.startswith("pts_platform_")
    assert is_well_formed(key.text)
    assert not is_well_formed(key.text.replace("pts_platform_", "pts_live_"))
    assert len(key.start) == len("pts_platform_") + 4
    assert key.hash == hash_key(key.text)


def test_a_key_holds_256_random_bits_none_of_which_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def all_but(bits: int) -> int:
        asked.append(bits)
        return 2**256 - len(asked)

    monkeypatch.setattr("secrets.randbits", all_but)
    secrets = {new_key(sandbox=False).text[len("pts_live_") : -6] for _ in range(50)}
    assert set(asked) == {256}
    assert len(secrets) == 50  # Numbers that differ in their last bits only still differ as text.


@given(st.sampled_from([_LIVE, _DEVELOPMENT]), st.data())
@effort(max_examples=500, deadline=None)
def test_a_change_of_any_one_character_is_noticed(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text) - 1))
    character = data.draw(st.sampled_from(_ALPHANUMERIC + "_- ") | st.characters())
    assume(character != text[place])
    assert not is_well_formed(text[:place] + character + text[place + 1 :])


@given(st.sampled_from([_LIVE, _DEVELOPMENT]), st.data())
@effort(deadline=None)
def test_a_lost_a_doubled_and_two_swapped_characters_are_noticed(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text) - 2))
    before, one, two, after = text[:place], text[place], text[place + 1], text[place + 2 :]
    assert not is_well_formed(before + two + after)
    assert not is_well_formed(before + one + one + two + after)
    if one != two:
        assert not is_well_formed(before + two + one + after)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 31, 9, 30, tzinfo=UTC), "2026-01-31T09:30:00.000000Z"),
        (datetime(2026, 12, 1, 23, 59, 59, 120, tzinfo=UTC), "2026-12-01T23:59:59.000120Z"),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2025-12-31T23:00:00.000000Z"),
    ],
)
def test_a_moment_is_written_in_utc_with_six_decimals_and_z(moment: datetime, text: str) -> None:
    assert timestamp(moment) == text


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


def test_a_cursor_with_one_character_changed_is_none_and_none_of_another_list() -> None:
    for place, character in enumerate(CURSOR):
        changed = CURSOR[:place] + ("B" if character == "A" else "A") + CURSOR[place + 1 :]
        assert cursors.decode("transactions", FILTERS, changed) is None, place
    assert cursors.decode("batches", FILTERS, CURSOR) is None


@given(st.text())
def test_any_other_text_is_no_cursor(text: str) -> None:
    assert cursors.decode("transactions", FILTERS, text) is None
