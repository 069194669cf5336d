"""Time zones: a moment as a person of a zone writes it, and such a local time read back."""

from datetime import UTC, date, datetime, time
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from app.values.timestamps import timestamp

ZONE_OF_ALL = "UTC"


@cache
def zone_names() -> tuple[str, ...]:
    """Return the zones that a person may choose: UTC, and those of all places, as `Europe/Berlin`."""
    table = files("tzdata").joinpath("zoneinfo", "zone.tab").read_text(encoding="utf-8")
    places = (line.split("\t")[2] for line in table.splitlines() if not line.startswith("#"))
    return (ZONE_OF_ALL, *sorted(places))


def local_moment(zone: str, when: datetime) -> datetime:
    """Return a time with the date and the clock of a zone."""
    return when.astimezone(ZoneInfo(zone))


def moment_in(zone: str, when: datetime) -> str:
    """Write a time to the minute, as the clocks of a zone show it, with their distance from UTC."""
    local = local_moment(zone, when)
    return f"{local:%Y-%m-%d %H:%M} {_distance(local)}"


def _distance(local: datetime) -> str:
    """Return how far a local time is from UTC, as `UTC+5:30`."""
    sign, hours, minutes = f"{local:%z}"[0], int(f"{local:%z}"[1:3]), f"{local:%z}"[3:5]
    return "UTC" + (f"{sign}{hours}" if hours or minutes != "00" else "") + (f":{minutes}" if minutes != "00" else "")


def day_of(zone: str, day: date) -> tuple[datetime, datetime]:
    """Return the first and the last moment of a day in a zone, in UTC, however the clocks change in it.

    Raises:
        OverflowError: the calendar ends there.
    """
    first, last = (datetime.combine(day, clock, ZoneInfo(zone)) for clock in (time.min, time.max))
    return first.astimezone(UTC), last.replace(fold=1).astimezone(UTC)


def whole_day(zone: str, text: str, *, is_last: bool) -> str:
    """Return the first or the last moment of a day of a zone, as the interface writes it; any other text as it is."""
    try:
        return timestamp(day_of(zone, date.fromisoformat(text))[is_last])
    except (ValueError, OverflowError):
        return text


def moment_of(zone: str, day: date, clock: time) -> datetime:
    """Return a local time of a zone in UTC.

    Raises:
        ValueError: the clocks of the zone never show this time, or show it twice; the text is a sentence about it.
    """
    first = datetime.combine(day, clock, ZoneInfo(zone))
    second = first.replace(fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    assert before is not None and after is not None, "every zone has an offset"  # noqa: PT018
    if before == after:
        return first.astimezone(UTC)
    near = f"Choose another time, such as {first - abs(before - after):%H:%M} or {first + abs(before - after):%H:%M}."
    if before < after:
        raise ValueError(f"There is no {clock:%H:%M} on {day} in {zone}: the clocks go forward over it. {near}")
    raise ValueError(f"{clock:%H:%M} comes twice on {day} in {zone}: the clocks go back. {near}")
