"""The moment of a scheduled send: how it is written, and how far ahead it may be."""

import re
from datetime import UTC, datetime, timedelta

# ISO 8601 with a zone. The expression is valid in JSON Schema too.
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
# How far ahead: a minute, less a second for the request's way, so that exactly a minute is not refused.
EARLIEST, LATEST = timedelta(seconds=59), timedelta(days=366)

_MOMENT = re.compile(MOMENT)


def parse(text: str) -> datetime:
    """Read a moment, to the microsecond.

    Raises:
        ValueError: it has another form, or there is no such moment; the text completes “The send_at …”.
    """
    if not _MOMENT.fullmatch(text):
        raise ValueError("must be a time in ISO 8601 with its zone, such as 2026-01-31T09:30:00Z.")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):  # A month 13, or a moment before the year 1.
        raise ValueError("must be a date, a time and a zone that exist.") from None


def bounds_fault(moment: datetime, *, now: datetime) -> str | None:
    """Return what is wrong with a moment, seen from `now`; None if it is 1 minute to 366 days ahead."""
    if moment < now:
        return "The send_at must be 1 minute to 366 days ahead, but is past."
    if moment < now + EARLIEST:
        return "The send_at must be 1 minute to 366 days ahead, but is sooner."
    if moment > now + LATEST:
        return "The send_at must be 1 minute to 366 days ahead, but is later."
    return None
