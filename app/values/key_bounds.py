"""The bounds of an API key: what it may call, until when, and for how many points."""

import re
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from app.values.numbers import counted, moment
from app.values.texts import shown
from app.values.timestamps import TIMESTAMP_FORM, parse_timestamp, timestamp

READ, SEND, REVERSE, WEBHOOKS, APPROVE = SCOPES = ("read", "send", "reverse", "webhooks", "approve")

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# A day, or a time with its zone. The expression is valid in JSON Schema too.
END_FORM = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$|{TIMESTAMP_FORM}"


class Bounds(NamedTuple):
    """What bounds a key; each is None where it does not.

    The points are those of one batch, and of the batches accepted on one day in UTC. From `expires_at` on the key opens
    nothing.
    """

    scopes: Sequence[str] | None = None
    expires_at: datetime | None = None
    batch_limit: int | None = None
    daily_limit: int | None = None

    def allow(self, scopes: Collection[str]) -> bool:
        """Tell whether the key may make a call that needs any of these scopes; none: the call needs no scope."""
        return self.scopes is None or not scopes or any(scope in self.scopes for scope in scopes)

    def payload(self) -> dict[str, Any]:
        """Return the bounds as JSON has them, in an event and in an answer."""
        return {
            "scopes": None if self.scopes is None else list(self.scopes),
            "expires_at": None if self.expires_at is None else timestamp(self.expires_at),
            "batch_limit": self.batch_limit,
            "daily_limit": self.daily_limit,
        }

    def in_words(self) -> str:
        """Return the bounds for a person: `send only; until the end of 2026-12-31 UTC`; empty without any."""
        words = [] if self.scopes is None else [f"{', '.join(self.scopes)} only"]
        words += [] if self.expires_at is None else [f"until {_end_in_words(self.expires_at)}"]
        words += [] if self.batch_limit is None else [f"{counted(self.batch_limit, 'point')} a batch"]
        words += [] if self.daily_limit is None else [f"{counted(self.daily_limit, 'point')} a day"]
        return "; ".join(words)


UNBOUNDED = Bounds()


def _end_in_words(end: datetime) -> str:
    """Return an end as people gave it: a day, where it is a day's end, else the moment."""
    in_utc = end.astimezone(UTC)
    return moment(end) if in_utc.time() != time() else f"the end of {in_utc.date() - timedelta(days=1)} UTC"


def in_order(scopes: Collection[str]) -> list[str] | None:
    """Return scopes in their own order, each once; None for none, which is no bound."""
    return [scope for scope in SCOPES if scope in scopes] or None


def parse_end(text: str) -> datetime:
    """Read when a key ends: a time with its zone, or a day, whose end in UTC it is.

    Raises:
        ValueError: it is neither, does not exist, or is past; the text completes “The <name> …”.
    """
    if _DAY.fullmatch(text):
        try:
            moment = datetime.combine(date.fromisoformat(text) + timedelta(days=1), time(), UTC)
        except (ValueError, OverflowError):
            raise ValueError(f"must be a day that exists, before 9999-12-31, but is {shown(text)}.") from None
    elif re.fullmatch(TIMESTAMP_FORM, text):
        moment = parse_timestamp(text)
    else:
        raise ValueError(
            f"must be a day such as 2026-12-31, or a time such as 2026-12-31T18:00:00Z, but is {shown(text)}."
        )
    if moment <= datetime.now(UTC):
        raise ValueError(f"must be later than now, but is {shown(text)}.")
    return moment
