"""Numbers and times as a person reads them."""

from datetime import UTC, datetime


def points(number: int) -> str:
    """Write a number with its thousands apart."""
    return f"{number:,}"


def moment(when: datetime) -> str:
    """Write a time to the minute, in UTC: PostgreSQL answers in the zone of its connection."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def counted(number: int, noun: str, ending: str = "s") -> str:
    """Write how many there are of something; `ending` makes its plural."""
    return f"{points(number)} {noun}{'' if number == 1 else ending}"
