"""Requests for drains over Redis, and the workers that stay to be woken by them.

Both save time and decide nothing. A request expires after a second, so a lost request blocks others for no longer. A
sweep needs none.

A worker that has drained takes the next request of the backlog; when there is none, it stays for a moment and puts its
name on a list. A front that needs a drain takes a name from the list and wakes that worker. Only when nobody stays does
it leave the request in the backlog, and send a message that brings another worker.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError

from app import logs
from app.messaging import jobs, process_redis
from app.messaging.jobs import Job
from app.settings import settings

# Far longer than a message waits and its drain takes. After that, the message counts as lost.
_KEPT_MS = 1_000

_REQUEST = "points:drain-requested:{}"
# The names of the workers that stay. Each is also the list through which that worker is woken.
_STAYING = "points:staying"
# The requests that came while nobody stayed. The next worker to finish takes the oldest.
BACKLOG = "points:drain-backlog"
# A message is on its way to bring another worker. It waits for as long as all workers are busy, and a second would
# wait behind it; so this is kept for longer than a worker's turn, unless the message arrives.
_CALLED = "points:worker-called"
_CALLED_KEPT_MS = 3_000
# How long a worker stays when nobody needs it. Another task of its queue waits for no longer.
_STAYS_S = 0.5
# After this time without a request, a worker that stays does what can wait.
_IDLE_AFTER_S = 0.02
# After a failure, how long to send the broker nothing: each attempt costs its timeout.
_LEFT_ALONE_S = 1.0

_log = logs.logger()


def key_of(organization_id: int) -> str:
    """Return where an organization's request is noted. A worker deletes it before its last look at the queue."""
    return _REQUEST.format(organization_id)


def need_message(requests: Sequence[Job], *, are_noted: bool = False) -> list[Job]:
    """Note that these drains are requested, and wake workers that stay; return the requests that need a message.

    `are_noted`: they are noted already, and a worker that has them in hand gives them back.

    If a drain was requested before, nothing more is needed: a worker withdraws the request before its last look at the
    queue, and that look finds everything that was committed before this call. While no worker stays, one message is on
    its way for all organizations. Without Redis this is unknown. Then every request needs a message, or none does if
    Redis is the broker too and cannot take it.
    """
    try:
        with process_redis.unless_away() as redis, redis.pipeline(transaction=False) as pipeline:
            for request in requests:
                keys = (key_of(request.organization_id), _STAYING, BACKLOG, _CALLED)
                times = (_KEPT_MS, _CALLED_KEPT_MS)
                pipeline.eval(_NEEDS_MESSAGE, len(keys), *keys, _words(request), *times, int(are_noted))
            answers = pipeline.execute()
    except RedisError:
        return list(requests) if settings().broker_url is not None else []
    return [request for request, needs_message in zip(requests, answers, strict=True) if needs_message]


# One step, so that no two fronts wake the same worker, and a worker that leaves the list knows whether it is woken. The
# name that was added last is taken first: its worker is the most surely alive.
_NEEDS_MESSAGE = """
    local is_new = redis.call('SET', KEYS[1], 1, 'NX', 'PX', ARGV[2])
    if not is_new and ARGV[4] == '0' then return 0 end
    local worker = redis.call('RPOP', KEYS[2])
    redis.call('RPUSH', worker or KEYS[3], ARGV[1])
    redis.call('PEXPIRE', worker or KEYS[3], ARGV[2])
    if worker or not redis.call('SET', KEYS[4], 1, 'NX', 'PX', ARGV[3]) then return 0 end
    return 1
"""
# One step too: a name is on its list only while the backlog is empty.
_NEXT_OR_STAY = """
    local request = redis.call('LPOP', KEYS[2])
    if request then return request end
    redis.call('RPUSH', KEYS[1], ARGV[1])
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return false
"""


def note_arrival(message: Job) -> None:
    """Note that a message has brought its worker: another may be sent, and its request is in the backlog no more."""
    with suppress(RedisError), process_redis.unless_away() as redis, redis.pipeline(transaction=False) as pipeline:
        pipeline.delete(_CALLED)
        pipeline.lrem(BACKLOG, 1, _words(message))
        pipeline.execute()


class Staying:
    """A worker that stays: a front that takes its name from the list wakes it through the list of that name."""

    def __init__(self) -> None:
        self._name = f"{_STAYING}:{uuid4().hex}"
        self._is_offered = False
        self._next: Job | None = None
        self._place: int | None = None  # Of the answer to an offer, among those of its pipeline.

    def offer(self, pipeline: Pipeline) -> None:
        """Take the backlog's next request, or put the name on the list; `note` gets what the pipeline answers."""
        self._place = None
        if not (self._is_offered or self._next):
            self._place, self._is_offered = len(pipeline), True
            pipeline.eval(_NEXT_OR_STAY, 2, _STAYING, BACKLOG, self._name, _KEPT_MS)

    def note(self, answers: Sequence[Any]) -> None:
        """Note what the pipeline of an offer has answered."""
        if self._place is not None and (request := answers[self._place]) is not None:
            self._is_offered, self._next = False, _read(request)

    def withdraw(self) -> Job | None:
        """Take the name off the list; if the backlog or a front has given a request meanwhile, return that."""
        if self._next or not self._is_offered:
            return self._taken()
        self._is_offered = False
        try:
            with process_redis.unless_away() as redis:
                return None if redis.lrem(_STAYING, 1, self._name) else self._woken(redis, _IDLE_AFTER_S)
        except RedisError:
            return None

    def wait(self, *, at_most_s: float, when_idle: Callable[[], None]) -> Job | None:
        """Wait for a request of the backlog or of a front; None if none comes in time, or Redis is away.

        `when_idle` is called once, if no request comes at once.
        """
        try:
            with process_redis.unless_away() as redis:
                if not (self._is_offered or self._next):
                    with redis.pipeline(transaction=False) as pipeline:
                        self.offer(pipeline)
                        self.note(pipeline.execute())
                if self._next:
                    return self._taken()
                woken = self._woken(redis, min(_IDLE_AFTER_S, at_most_s))
                if woken is None:
                    when_idle()
                    woken = self._woken(redis, min(_STAYS_S, at_most_s))
        except RedisError:
            return None
        return woken or self.withdraw()

    def _taken(self) -> Job | None:
        taken, self._next = self._next, None
        return taken

    def _woken(self, redis: Redis, within_s: float) -> Job | None:
        taken = redis.blpop([self._name], timeout=within_s)
        if taken is None:
            return None
        self._is_offered = False
        return _read(str(taken[1]))


def _words(request: Job) -> str:
    return f"{request.organization_id} {request.request_id or ''}"


def _read(words: str) -> Job:
    organization_id, _, request_id = words.partition(" ")
    return Job(int(organization_id), request_id=request_id or None)


class Drains:
    """The drains that a process asks for."""

    def __init__(self) -> None:
        # Until when (`time.monotonic`) the broker is sent nothing; 0 once it has taken a message.
        self._left_alone_until = 0.0

    def ask(self, *wanted: Job) -> None:
        """Ask for drains that issue these batches, unless requested ones will still look at the queues.

        Never fails: the batches are accepted, and a sweep issues them if no message does.
        """
        now = time.monotonic()
        if now < self._left_alone_until:
            return
        if self._left_alone_until:  # This request tries the broker; the others do not wait for the result.
            self._left_alone_until = now + _LEFT_ALONE_S
        for job in need_message(wanted):
            is_taken = _submit(job)
            self._left_alone_until = 0.0 if is_taken else time.monotonic() + _LEFT_ALONE_S
            if not is_taken:
                return  # Each further message would wait for the broker as long.


def _submit(job: Job) -> bool:
    """Send a message; return whether the broker took it."""
    try:
        return jobs.submit(job)
    except Exception as error:  # noqa: BLE001  # The batch is accepted, so no error of the broker may reach the caller.
        _log.error("message_not_sent", organization_id=job.organization_id, **logs.kind_of(error))
        return False


drains = Drains()
