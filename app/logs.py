"""Logs on standard error: one event a line, as JSON or as text, without addresses and keys.

Our own modules log an event's name and its fields (docs/observing.md lists them) and no sentences, which could hold an
address. In sentences of libraries, everything that looks like an address or a key is masked. Of an exception only its
type and source lines are logged, because PostgreSQL repeats values in the text of its errors.
"""

import contextlib
import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import orjson
import structlog
from structlog.contextvars import merge_contextvars
from structlog.typing import FilteringBoundLogger

from app.values.timestamps import timestamp

# Masks keys, and words that hold something like an address. The whole word is masked, because an address may contain
# most delimiters; only the path before a query stays. `?+` and `?>` prevent backtracking, which would take seconds on a
# long line of at-signs and dots.
_SECRET = re.compile(
    r"(?<!\S)([^\s@%]*?[?&]\w+=)?+(?>\S*?(?:@|%40))(?>\S*?(?:\.|%2E))\S*\w|pts_(?:live|dev)_\w+", re.IGNORECASE
)
_PLACES_MAX = 3


class _Output:
    """Writes this process's lines to standard error.

    Each line is one write, so lines of several processes do not mix in a pipe (up to PIPE_BUF). structlog's own writers
    have a lock and a buffer, which may be in use when a process forks or a signal handler runs.
    """

    part = "points"
    as_json = True

    def write(self, line: bytes) -> None:
        with contextlib.suppress(OSError):  # The log's reader is gone; the work goes on.
            os.write(2, line)

    debug = info = warning = error = critical = write


_output = _Output()


def logger() -> FilteringBoundLogger:
    """Return the logger of a module: `log.info("event_name", field=value)`."""
    made: FilteringBoundLogger = structlog.get_logger()
    return made


def configure(part: str, *, log_format: str = "auto") -> None:
    """Make this process and its libraries log under the name of a `part` of the service, such as `web`.

    `log_format` is `json`, `text`, or `auto`: text where standard error is a terminal, else JSON.
    """
    _output.part = part
    _output.as_json = log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())
    logging.basicConfig(level=logging.INFO, handlers=[_Libraries()], force=True)
    logging.captureWarnings(capture=True)


def _render(_: Any, level: str, event: MutableMapping[str, Any]) -> bytes:
    now = timestamp(datetime.now(UTC))
    name = event.pop("event")
    fields = {key: value for key, value in event.items() if value is not None}
    if _output.as_json:
        line = {"at": now, "level": level, "part": _output.part, "event": name, **fields}
        try:
            return orjson.dumps(line, default=str, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:  # Something is not UTF-8, such as a name in the environment.
            return json.dumps(line, default=str, ensure_ascii=False).encode(errors="replace") + b"\n"
    words = " ".join(f"{key}={_plain(value)}" for key, value in fields.items())
    return f"{now[11:23]} {level:<7} {name}  {words}".rstrip().encode(errors="replace") + b"\n"


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("\n", " ")


structlog.configure(
    processors=[merge_contextvars, _render],
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    logger_factory=lambda *_: _output,
    cache_logger_on_first_use=True,
)


def kind_of(error: BaseException) -> dict[str, Any]:
    """Return the fields of an error that are safe to log: its type, and what PostgreSQL says without values."""
    cause = getattr(error, "orig", None) or error
    constraint = getattr(getattr(cause, "diag", None), "constraint_name", None)
    fields = {"error": type(cause).__name__, "sqlstate": getattr(cause, "sqlstate", None), "constraint": constraint}
    return {name: value for name, value in fields.items() if value is not None}


def places_of(trace: TracebackType | None) -> list[str]:
    """Return the innermost lines of a traceback as `file:line`, the deepest last."""
    places = [f"{frame.f_code.co_filename}:{line}" for frame, line in traceback.walk_tb(trace)]
    return places[-_PLACES_MAX:]


class _Libraries(logging.Handler):
    """Handles what libraries log through the standard library."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"event": "message", "logger": record.name}
        context = getattr(record, "data", None)
        if record.name == "celery.app.trace" and isinstance(context, Mapping):
            # Celery's sentence repeats the text of the exception.
            fields |= {"event": "task_failed", "task": context.get("name"), "task_id": context.get("id")}
        else:
            fields["message"] = _SECRET.sub(lambda match: f"{match[1] or ''}***", _message_of(record))
        if record.exc_info and record.exc_info[1] is not None:
            fields |= kind_of(record.exc_info[1]) | {"places": places_of(record.exc_info[2])}
        level = record.levelname.lower()
        _output.write(_render(None, level, merge_contextvars(None, level, fields)))


def _message_of(record: logging.LogRecord) -> str:
    """Return a library's message, unformatted if its values do not fit: a bad log call must not end the work."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001
        return str(record.msg)
