"""The tries of one call: after each, whether it is answered, and if not, whether and when to try again."""

import random
import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from points_client.answers import Answer, CutShort, envelope_of
from points_client.errors import NoAnswer, PointsError

RETRIED = frozenset((429, 502, 503, 504))
_BACKOFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_RETRY_AFTER_MAX_S = 3600.0
# After a try that may have been accepted, only these prove that it was not, because the service looks up the key first.
_DECIDED = frozenset((403, 409, 422))
# With these, this try was not accepted, even if a proxy answered.
_NOT_ACCEPTED = frozenset((301, 302, 307, 308, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429))


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A wait before the next try, and why: the `status` of the answer (202: queued), or the `error` without one."""

    seconds: float
    status: int | None = None
    error: Exception | None = None

    @property
    def trouble(self) -> str:
        if self.status is None:
            return "The service cannot be reached"
        return "It is queued" if self.status == 202 else f"The service answers {self.status}"


class Attempts:
    """The tries of one call, until `time_s` is over.

    `key` is its idempotency key. `repeatable`: doing it twice has the effect of once, by the key or by its nature.
    Otherwise it is tried again only if the try before surely did nothing. `until_done`: wait after a 202.
    """

    def __init__(
        self, *, key: str | None, repeatable: bool, until_done: bool, time_s: float, retried: AbstractSet[int] = RETRIED
    ) -> None:
        self._key, self._repeatable, self._until_done = key, repeatable, until_done
        self._retried = retried if repeatable else frozenset((429,))
        self._ends_at = time.monotonic() + time_s
        self._failures = 0
        self._may_be_accepted = False

    def lost(self, error: Exception) -> Wait:
        """Return the wait after a call or an answer was lost.

        Raises:
            NoAnswer: there is no time for another try, or another try might do it twice.
        """
        never_left = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | UnicodeError)
        self._may_be_accepted |= not never_left
        if not (self._repeatable or never_left):
            raise NoAnswer(f"The answer was lost ({error}), and doing it twice is not the same.", key=None) from error
        return self._next(Wait(seconds=self._backoff_s(), error=error))

    def answered(self, response: httpx.Response) -> Answer | Wait:
        """Return the answer of the service, or the wait before the next try.

        Raises:
            NoAnswer: there is no clear answer, and no time for another try.
            PointsError: the call is refused.
        """
        status = response.status_code
        self._may_be_accepted |= status not in _NOT_ACCEPTED and not response.is_success
        if status in self._retried:
            return self._next(self._asked(response))
        try:
            document = envelope_of(response)
        except CutShort as error:
            return self.lost(error)
        except PointsError as error:
            decided = status in _DECIDED and error.errors
            if self._key is not None and not decided and (self._may_be_accepted or status not in _NOT_ACCEPTED):
                raise NoAnswer(str(error), key=self._key, status=status, request_id=error.request_id) from error
            raise
        replayed = response.headers.get("Idempotency-Replayed") == "true" and not self._may_be_accepted
        answer = Answer(
            status=status, data=document["data"], additional=document.get("additional_data") or {}, replayed=replayed
        )
        if status != 202 or not self._until_done or answer.data.get("status") == "scheduled":
            return answer
        self._may_be_accepted = True
        wait = self._asked(response)
        return wait if self._has_time_for(wait) else answer

    def _next(self, wait: Wait) -> Wait:
        self._failures += 1
        if not self._has_time_for(wait):
            message = f"{wait.trouble}; the next try would be in {wait.seconds:.0f} s, and the time is over before."
            raise NoAnswer(message, key=self._key, status=wait.status) from wait.error
        return wait

    def _has_time_for(self, wait: Wait) -> bool:
        return time.monotonic() + wait.seconds <= self._ends_at

    def _asked(self, response: httpx.Response) -> Wait:
        """Return the wait that an answer asks for, and a little more, so that callers do not all come at once."""
        asked_s = retry_after_s(response)
        seconds = self._backoff_s() if asked_s is None else max(0.1, asked_s) * _between(1.0, 1.1)
        return Wait(seconds=seconds, status=response.status_code)

    def _backoff_s(self) -> float:
        return _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)] * _between(0.5, 1.0)


def retry_after_s(response: httpx.Response) -> float | None:
    """Return the seconds of `Retry-After`, at most an hour: it is a number of them, or a date (RFC 9110, 10.2.3).

    A date is compared with the answer's `Date`, if there is one, because both come from one clock.
    """
    asked = response.headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdecimal():
        return min(float(asked), _RETRY_AFTER_MAX_S)
    try:
        until = parsedate_to_datetime(asked)
        sent = response.headers.get("Date")
        now = datetime.now(UTC) if sent is None else parsedate_to_datetime(sent)
        return min(max((until - now).total_seconds(), 0.0), _RETRY_AFTER_MAX_S)
    except (TypeError, ValueError):  # It is missing, or has another form.
        return None


def _between(low: float, high: float) -> float:
    return random.uniform(low, high)  # noqa: S311  # It spreads callers, and hides nothing.
