"""Requests for drains over Redis, and the workers that stay to be woken by one.

Both save time and decide nothing. A request expires after a second, so a lost one blocks others for no longer, and a
sweep needs none.

A worker that has drained stays for a moment and puts its name on a list. A front that needs a drain takes a name from
the list and wakes that worker; only when there is none does it send a message.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import uuid4

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError

from app.messaging import process_redis
from app.settings import settings

# Far longer than a message waits and its drain takes. After that, the message counts as lost.
_KEPT_MS = 1_000

_REQUEST = "points:drain-requested:{}"
# The names of the workers that stay. Each is also the list through which that worker is woken.
_STAYING = "points:staying"
# How long a worker stays when nobody needs it. Another task of its queue waits for no longer.
_STAYS_S = 0.5
# After this time without a request, a worker that stays does what can wait.
_IDLE_AFTER_S = 0.02


class Request(NamedTuple):
    """A request for the drain of an organization, and the id of the HTTP request behind it for the worker's log."""

    organization_id: int
    request_id: str | None = None


def key_of(organization_id: int) -> str:
    """Return where an organization's request is noted. A worker deletes it before its last look at the queue."""
    return _REQUEST.format(organization_id)


def need_message(requests: Sequence[Request]) -> list[Request]:
    """Note that these drains are requested, and wake workers that stay; return the requests that need a message.

    If a drain was requested before, nothing more is needed: a worker withdraws the request before its last look at the
    queue, and that look finds everything that was committed before this call. Without Redis this is unknown. Then every
    request needs a message, or none does if Redis is the broker too and cannot take it.
    """
    try:
        with process_redis.unless_away() as redis, redis.pipeline(transaction=False) as pipeline:
            for organization_id, request_id in requests:
                keys = (key_of(organization_id), _STAYING)
                pipeline.eval(_NEEDS_MESSAGE, len(keys), *keys, f"{organization_id} {request_id or ''}", _KEPT_MS)
            answers = pipeline.execute()
    except RedisError:
        return list(requests) if settings().broker_url is not None else []
    return [request for request, needs_message in zip(requests, answers, strict=True) if needs_message]


# One step, so that no two fronts wake the same worker, and a worker that leaves the list knows whether it is woken. The
# name that was added last is taken first: its worker is the most surely alive.
_NEEDS_MESSAGE = """
    if not redis.call('SET', KEYS[1], 1, 'NX', 'PX', ARGV[2]) then return 0 end
    local worker = redis.call('RPOP', KEYS[2])
    if not worker then return 1 end
    redis.call('RPUSH', worker, ARGV[1])
    redis.call('PEXPIRE', worker, ARGV[2])
    return 0
"""


class Staying:
    """A worker that stays: a front that takes its name from the list wakes it through the list of that name."""

    def __init__(self) -> None:
        self._name = f"{_STAYING}:{uuid4().hex}"
        self._is_offered = False

    def offer(self, pipeline: Pipeline) -> None:
        """Put the name on the list, by a pipeline that the caller executes."""
        if not self._is_offered:
            pipeline.rpush(_STAYING, self._name)
            pipeline.pexpire(_STAYING, _KEPT_MS)
            self._is_offered = True

    def withdraw(self) -> Request | None:
        """Take the name off the list; if a front has taken it, return what that front asks for."""
        if not self._is_offered:
            return None
        self._is_offered = False
        try:
            with process_redis.unless_away() as redis:
                return None if redis.lrem(_STAYING, 1, self._name) else self._woken(redis, _IDLE_AFTER_S)
        except RedisError:
            return None

    def wait(self, *, at_most_s: float, when_idle: Callable[[], None]) -> Request | None:
        """Wait until a front wakes this worker; None if none does in time, or Redis is away.

        `when_idle` is called once, if no request comes at once.
        """
        try:
            with process_redis.unless_away() as redis:
                if not self._is_offered:
                    with redis.pipeline(transaction=False) as pipeline:
                        self.offer(pipeline)
                        pipeline.execute()
                woken = self._woken(redis, min(_IDLE_AFTER_S, at_most_s))
                if woken is None:
                    when_idle()
                    woken = self._woken(redis, min(_STAYS_S, at_most_s))
        except RedisError:
            return None
        return woken or self.withdraw()

    def _woken(self, redis: Redis, within_s: float) -> Request | None:
        taken = redis.blpop([self._name], timeout=within_s)
        if taken is None:
            return None
        self._is_offered = False
        organization_id, _, request_id = str(taken[1]).partition(" ")
        return Request(int(organization_id), request_id or None)
