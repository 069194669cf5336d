"""How far ahead the time of a scheduled send may be."""

from datetime import datetime, timedelta

# A minute, less a second for the request's way, so that exactly a minute is not refused.
EARLIEST, LATEST = timedelta(seconds=59), timedelta(days=366)


def bounds_fault(moment: datetime, *, now: datetime) -> str | None:
    """Return what is wrong with a time, as of `now`; None if it is 1 minute to 366 days ahead."""
    if moment < now:
        return "The send_at must be 1 minute to 366 days ahead, but is past."
    if moment < now + EARLIEST:
        return "The send_at must be 1 minute to 366 days ahead, but is sooner."
    if moment > now + LATEST:
        return "The send_at must be 1 minute to 366 days ahead, but is later."
    return None
