"""The record of a request: its id, its organization and batch, and how long it waits."""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(kw_only=True, slots=True)
class Record:
    """One request. The views fill in organization or platform key, batch and wait; times are from `perf_counter`.

    `wait` says why a send is answered 202: `scheduled`, `not_wished`, `ran_out`, `no_place` (too many wait already), or
    `not_read` (PostgreSQL went away after the batch was accepted).

    `trace_id` is the request's id for logs and tasks. These must hold no e-mail address, so an id with an @ is replaced
    by the beginning of its SHA-256. `key_hash` is that of a well-formed key. `code` is that of the answer, a word for
    programs. `calls_counted` are the calls of its key, this one too, in the rate limit's window.
    """

    request_id: str
    trace_id: str
    started_at: float
    key_hash: bytes | None = None
    code: str | None = None
    organization_id: int | None = None
    platform_key_id: int | None = None
    batch_id: int | None = None
    waiting_since: float | None = None
    calls_counted: int = 0
    wait: str | None = None

    @property
    def has_good_key(self) -> bool:
        return self.organization_id is not None or self.platform_key_id is not None


_current: ContextVar[Record] = ContextVar("record")


def current_record() -> Record:
    """Return the record of the current request."""
    return _current.get()


def set_record(record: Record) -> None:
    """Make a record that of the current request."""
    _current.set(record)


def note_code(code: str | None) -> None:
    """Note the code of the answer, if one is made for a request."""
    record = _current.get(None)
    if record is not None:
        record.code = code
