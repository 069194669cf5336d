"""Time zones: what the clocks of a zone show, and a local time read back, which may not exist or exist twice."""

from datetime import UTC, date, datetime, time

import pytest

from app.values.zones import day_of, moment_in, moment_of


@pytest.mark.parametrize(
    ("zone", "written"),
    [
        ("UTC", "2026-07-01 12:00 UTC"),
        ("Europe/Berlin", "2026-07-01 14:00 UTC+2"),
        ("Asia/Kolkata", "2026-07-01 17:30 UTC+5:30"),
        ("America/St_Johns", "2026-07-01 09:30 UTC-2:30"),
        ("Pacific/Kiritimati", "2026-07-02 02:00 UTC+14"),
        ("Africa/Abidjan", "2026-07-01 12:00 UTC"),
    ],
)
def test_a_moment_is_written_as_the_clocks_of_the_zone_show_it(zone: str, written: str) -> None:
    assert moment_in(zone, datetime(2026, 7, 1, 12, 0, 59, tzinfo=UTC)) == written


def test_a_local_time_is_read_in_its_zone() -> None:
    assert moment_of("America/New_York", date(2026, 1, 31), time(9, 30)) == datetime(2026, 1, 31, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "day", "clock", "words"),
    [
        ("Europe/Berlin", date(2026, 3, 29), time(2, 30), "There is no 02:30 .*, such as 01:30 or 03:30"),
        ("Europe/Berlin", date(2026, 10, 25), time(2, 30), "02:30 comes twice .*, such as 01:30 or 03:30"),
        ("Australia/Lord_Howe", date(2026, 10, 4), time(2, 10), "There is no 02:10 .*, such as 01:40 or 02:40"),
    ],
)
def test_a_time_that_is_missing_or_comes_twice_is_a_sentence(zone: str, day: date, clock: time, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        moment_of(zone, day, clock)


def test_a_day_is_as_long_as_its_clocks_make_it() -> None:
    hours = {}
    for day in (date(2026, 3, 29), date(2026, 7, 1), date(2026, 10, 25)):
        first, last = day_of("Europe/Berlin", day)
        hours[day] = round((last - first).total_seconds() / 3_600)
    assert list(hours.values()) == [23, 24, 25]
    first, last = day_of("Africa/Cairo", date(2026, 10, 29))  # Its last hour comes twice.
    assert round((last - first).total_seconds() / 3_600) == 25
