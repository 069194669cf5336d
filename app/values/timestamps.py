"""Times: how every HTTP answer and every command writes them, how they are read, and how far ahead they may be."""

import re
from datetime import UTC, datetime, timedelta

from app.errors import Fault
from app.values.texts import shown

# ISO 8601 with a zone. The expression is valid in JSON Schema too.
TIMESTAMP_FORM = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)

_FORM = re.compile(TIMESTAMP_FORM)
# The offsets that zones have, which generators of times do not keep to: the refusal says them in words.
_OFFSETS = re.compile(r"[Zz]|[+-](0[0-9]|1[01]):(00|15|30|45)|[+-]12:00|\+(12:(15|30|45)|13:(00|15|30|45)|14:00)")
_EXAMPLE = "2026-01-31T09:30:00Z"


def timestamp(moment: datetime) -> str:
    """Write a time as the interface document does: ISO 8601, UTC, exactly six decimals, `Z`."""
    return f"{moment.astimezone(UTC).isoformat(timespec='microseconds')[:26]}Z"


def parse_timestamp(text: str, *, round_up: bool = False) -> datetime:
    """Read a time, in UTC, to the microsecond. More than six decimals are rounded down, or with `round_up` up.

    Raises:
        ValueError: it has another form, or there is no such time; the text completes “The <name> …”.
    """
    parts = _FORM.fullmatch(text)
    if not parts:
        raise ValueError(f"must be a time in ISO 8601 with its zone, such as {_EXAMPLE}, but is {shown(text)}.")
    if not _OFFSETS.fullmatch(parts[3]):
        offsets = "an offset of whole quarters of an hour from -12:00 to +14:00"
        raise ValueError(f"must be a time with {offsets}, but is {shown(text)}.")
    is_cut = (parts[2] or "")[len(".123456") :].strip("0") != ""
    try:
        moment = datetime.fromisoformat(text.upper()).astimezone(UTC)  # It keeps six decimals.
        return moment + timedelta(microseconds=1) if is_cut and round_up else moment
    except (ValueError, OverflowError):  # A month 13, or a time before the year 1.
        raise ValueError(f"must be a date, a time and a zone that exist, but is {shown(text)}.") from None


# A minute, less a second for the request's way, so that exactly a minute is not refused.
EARLIEST, LATEST = timedelta(seconds=59), timedelta(days=366)


def bounds_fault(moment: datetime, *, now: datetime) -> Fault | None:
    """Return what is wrong with a time, as of `now`; None if it is 1 minute to 366 days ahead."""
    if now + EARLIEST <= moment <= now + LATEST:
        return None
    it_is = "past" if moment < now else "sooner" if moment < now + EARLIEST else "later"
    return Fault("The send_at", f"must be 1 minute to 366 days ahead, but is {it_is}.")


HOLD_DAYS_MAX = 3_650
