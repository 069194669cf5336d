"""Attempts to deliver an event: the outcome of each, when the next follows a failure, and how long they are kept."""

import random
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

DELIVERIES_KEPT_DAYS = 30

_MINUTE, _HOUR = 60.0, 3_600.0
# The last delay is repeated.
SCHEDULE_S = (5.0, 5 * _MINUTE, 30 * _MINUTE, *(hours * _HOUR for hours in (2, 5, 10, 14, 20, 24)))
_SPREAD = 0.2
# The longest that `delay_s` returns.
DELAY_MAX_S = 2 * SCHEDULE_S[-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """The outcome of an attempt.

    `status` is the HTTP status, None without an answer. `error` is a word for why it failed, None if it did not.
    `retry_after_s` is what the receiver requested.
    """

    at: datetime
    ms: int
    status: int | None
    error: str | None
    retry_after_s: float | None = None


class Delivery(NamedTuple):
    """An attempt to deliver an event: which event, and the outcome."""

    sequence: int
    event_id: str
    type: str
    attempt: Attempt


def delay_s(failures: int, *, retry_after_s: float | None) -> float:
    """Return how many seconds to wait after a failure.

    The wait is spread by a fifth, so that receivers that failed together are not tried together. A receiver may ask for
    another, of up to twice the step; one of less than a second is a second.

    Args:
        failures: how often this event has failed, including this time.
        retry_after_s: what the receiver requested.
    """
    step = SCHEDULE_S[min(failures, len(SCHEDULE_S)) - 1]
    if retry_after_s is not None:
        return min(max(retry_after_s, 1.0), 2 * step)
    return step * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311  # nosec B311  # It guards no secret.


def drop_old_deliveries(connection: Connection, *, at_most: int) -> int:
    """Drop up to `at_most` attempts past their time; return how many."""
    return connection.execute(_DROP, {"days": DELIVERIES_KEPT_DAYS, "at_most": at_most}).rowcount


_DROP = text("""
    DELETE FROM webhook_deliveries
    WHERE id = ANY(ARRAY(SELECT id FROM webhook_deliveries
                         WHERE created_at < (SELECT clock_timestamp()) - make_interval(days => :days)
                         ORDER BY created_at LIMIT :at_most))
""")


_FAILURES = {
    "redirected": "it answered with a redirect, which is not followed",
    "timeout": "no answer within 15 seconds",
    "not_connected": "no connection",
    "tls_failed": "no secure connection (TLS)",
    "connection_lost": "the connection was lost",
    "broken_answer": "the answer was no HTTP",
    "address_refused": "its address is not public",
    "name_not_found": "its host name was not found",
    "https_required": "its URL does not begin with https://",
    "not_renderable": "the event could not be written",
    "internal_error": "the service failed",
}


def told(status: int | None, error: str | None) -> str:
    """Return what became of an attempt, for a person."""
    if error in _FAILURES:
        return f"{_FAILURES[error]}{f' ({status})' if status else ''}"
    return f"delivered ({status})" if error is None else f"it answered {status}"
