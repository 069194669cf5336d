"""The tries of one call: after each, whether it is answered, and if not, whether and when to try again."""

import random
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar

import httpx

from points_client.answers import Answer, CutShort, Refusal, Unlike, envelope_of
from points_client.errors import NoAnswer, NotAccepted, PointsError, RateLimited
from points_client.reasons import is_hopeless, never_left, reason
from points_client.requests import PATIENCE_S, Call

T = TypeVar("T")
RETRIED = frozenset((408, 429, 500, 502, 503, 504))
TRY_S, TRY_MIN_S = 30.0, 1.0  # The service itself holds a call for up to 25 s.
_CONNECT_S, _CONTACT_S = 10.0, 4.0
_BACKOFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_RETRY_AFTER_MAX_S = 3600.0
# After a try that may have been accepted, only these prove that it was not, because the service looks up the key first.
_DECIDED = frozenset((403, 409, 422))
_QUEUED, _TOO_MANY = 202, 429


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A wait before the next try, and why: the `status` of the answer (202: queued), or the `error` without one.

    `is_last`: there is no next try, because waiting would not help.
    """

    seconds: float
    status: int | None = None
    error: Exception | None = None
    is_last: bool = False

    @property
    def trouble(self) -> str:
        if self.error is not None:
            return f"The service cannot be reached: {reason(self.error)}"
        return "It is queued" if self.status == _QUEUED else f"The service answers {self.status}"


@dataclass(frozen=True)
class Done(Generic[T]):
    """What was read from an answer, and the seconds of its `Retry-After`, if it has one."""

    value: T
    retry_after_s: float | None = None


class Clock:
    """The time of one call, over all its tries. 0 s: one try, as long as a try may take."""

    def __init__(self, seconds: float) -> None:
        if not seconds >= 0:
            raise ValueError(f"The seconds to wait must be 0 or more, but are {seconds}.")
        self._seconds, self._ends_at = seconds, time.monotonic() + seconds

    def left_s(self) -> float:
        return self._ends_at - time.monotonic()

    def has_time_for(self, seconds: float) -> bool:
        return self.left_s() >= seconds

    def try_s(self, *, repeatable: bool) -> float:
        """Return how long the next try may take: of what is left, half, so that there can be a second one."""
        if self._seconds == 0:
            return TRY_S
        return min(TRY_S, max(TRY_MIN_S, self.left_s() / 2 if repeatable else self.left_s()))


class Contact:
    """Whether anything ever took a connection `at` an address. Until then the address may be wrong, and no call tries
    for long: only with a patience above the default for as long as that.
    """

    def __init__(self, at: str, patience_s: float) -> None:
        self.at, self.is_made = at, False
        self.patience_s = patience_s if patience_s > PATIENCE_S else _CONTACT_S

    def connect_s(self) -> float:
        """Return how long a connection may take."""
        return _CONNECT_S if self.is_made else min(_CONNECT_S, self.patience_s)

    def lacks(self, error: Exception | None) -> bool:
        """Tell whether an error is that there never was a connection."""
        return not self.is_made and isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)


class Attempts:
    """The tries of one call. `may_be_accepted`: an earlier call with its key may have been."""

    def __init__(
        self,
        call: Call,
        clock: Clock,
        contact: Contact,
        *,
        retried: AbstractSet[int] = RETRIED,
        may_be_accepted: bool = False,
    ) -> None:
        self._call, self._clock, self._retried = call, clock, retried
        self._contact, self._first_clock = contact, Clock(contact.patience_s)
        self._may_be_accepted = may_be_accepted
        self._failures = 0
        self._last: Refusal | None = None
        self._request_id: str | None = None  # Of the last answer, also of one that cannot be read.

    def try_s(self) -> float:
        return self._clock.try_s(repeatable=self._call.repeatable)

    def prefer(self, try_s: float) -> str | None:
        """Return `Prefer`: not to be held, or shorter than the try takes."""
        held_s = int(try_s) - 1
        if self._call.wait_s is None or (held_s < 1 and self._call.wait_s and not self._failures):
            return None
        return f"wait={min(held_s, 25)}" if held_s >= 1 and self._call.wait_s else "respond-async"

    def lost(self, error: Exception) -> Wait:
        """Return the wait after a call or an answer was lost.

        Raises:
            NoAnswer: there is no time for another try, or another try might do it twice.
        """
        has_left = not never_left(error)
        self._may_be_accepted |= has_left
        self._contact.is_made |= has_left
        if isinstance(error, httpx.DecodingError):
            message = (
                f"The service answers, but not as a Points Issuing Service does ({reason(error)}). Is the URL right?"
            )
            raise self._no_answer(message) from error
        if not isinstance(error, httpx.TransportError | httpx.InvalidURL | UnicodeError):
            raise self._no_answer(f"The call broke off: {type(error).__name__}: {reason(error)}.") from error
        if has_left and not self._call.repeatable:
            message = f"The answer was lost ({reason(error)}), and doing it twice is not the same."
            raise self._no_answer(message) from error
        if is_hopeless(error):
            return Wait(seconds=0.0, error=error, is_last=True)
        return self._next(Wait(seconds=self._backoff_s(), error=error))

    def answered(self, response: httpx.Response, read: Callable[[Answer], T]) -> Done[T] | Wait:
        """Return what `read` finds in the answer of the service, or the wait before the next try.

        This is the one guard: whatever is wrong with an answer, it is an error that carries the key.

        Raises:
            NoAnswer: there is no clear answer, and no time for another try.
            PointsError: the call is refused.
        """
        self._contact.is_made, self._request_id = True, response.headers.get("X-Request-Id")
        try:
            found = envelope_of(response)
            if isinstance(found, Refusal):
                return self._refused(found)
            replayed = response.headers.get("Idempotency-Replayed") == "true" and not self._may_be_accepted
            return Done(read(replace(found, replayed=replayed)), retry_after_s(response))
        except CutShort as error:
            return self.lost(httpx.RemoteProtocolError(f"the answer broke off {error}".strip()))
        except PointsError:
            raise
        except Exception as error:
            self._may_be_accepted = True
            why = str(error) if isinstance(error, Unlike) else f"it cannot be read ({type(error).__name__})"
            message = f"The answer is not that of a Points Issuing Service to this call: {why}. Is the URL right?"
            raise self._unclear(message) from error

    def over(self, wait: Wait) -> NoAnswer:
        """Return the error for a call without another try."""
        if wait.is_last:
            return self._no_answer(f"{wait.trouble}. Trying again does not help.")
        if self._contact.lacks(wait.error):
            message = f"{wait.trouble} at {self._contact.at}. Are host and port right, and does it run there?"
            return self._no_answer(message)
        message = f"{wait.trouble}; the next try would be in {wait.seconds:.0f} s, and the time is over before."
        if wait.status == _TOO_MANY and not (self._may_be_accepted and self._call.changes):
            return RateLimited(message, **self._fields(), key=self._call.key)
        return self._no_answer(message)

    def _refused(self, found: Refusal) -> Wait:
        status, earlier_may_be = found.response.status_code, self._may_be_accepted
        # A proxy may have passed the call on, whatever it answers itself.
        self._may_be_accepted |= not found.is_ours or status >= 500 or status == 408
        self._last = found
        if status in self._retried and (self._call.repeatable or (found.is_ours and status == _TOO_MANY)):
            asked_s = retry_after_s(found.response)
            seconds = self._backoff_s() if asked_s is None else max(0.1, asked_s) * _between(1.0, 1.1)
            return self._next(Wait(seconds=seconds, status=status))
        if found.response.has_redirect_location and not earlier_may_be:
            raise PointsError(found.sentence, **found.fields, key=self._call.key)
        if not found.is_ours or status >= 500:
            raise self._unclear(found.sentence)
        if self._call.key is not None and earlier_may_be and status not in _DECIDED:
            raise self._no_answer(found.sentence)
        raise found.kind(found.sentence, **found.fields, key=self._call.key)

    def _unclear(self, message: str) -> PointsError:
        """Return the error for an answer that says nothing; a call that changes nothing is simply not answered."""
        if self._call.changes:
            return self._no_answer(message)
        return PointsError(message, **self._fields())

    def _no_answer(self, message: str) -> NoAnswer:
        kind = NoAnswer if self._may_be_accepted else NotAccepted
        return kind(message, **self._fields(), key=self._call.key)

    def _fields(self) -> dict[str, Any]:
        """Return what an error carries of the last answers."""
        return {**({} if self._last is None else self._last.fields), "request_id": self._request_id}

    def _next(self, wait: Wait) -> Wait:
        self._failures += 1
        clocks = [self._clock, *[self._first_clock] * self._contact.lacks(wait.error)]
        if not all(clock.has_time_for(wait.seconds) for clock in clocks):
            raise self.over(wait) from wait.error
        return wait

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
    except (OverflowError, TypeError, ValueError):  # It is missing, has another form, or is beyond all dates.
        return None


def _between(low: float, high: float) -> float:
    return random.uniform(low, high)  # noqa: S311  # It spreads callers, and hides nothing.
