"""Logs: one event a line, as JSON or for a person's eyes, on standard error; and what must never be in one.

Our own modules log an event's name and its fields (docs/observing.md lists them) and no sentence, so
that there is no place for an address to slip into. What libraries log passes through here too: their
sentences with everything masked that looks like an address or a key, and of an exception its kind and
its place, because PostgreSQL repeats values in the text of its errors.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import orjson
import structlog
from structlog.contextvars import merge_contextvars
from structlog.typing import FilteringBoundLogger

from app.log_output import Output
from app.timestamps import timestamp

# A key, and a word with something like an address in it: whole, because much of what delimits may stand in an address,
# but for the beginning of a path with a query. What has matched is never tried another way (`?+`, `?>`): a long line of
# at-signs and dots would hold up everybody for seconds.
_SECRET = re.compile(
    r"(?<!\S)([^\s@%]*?[?&]\w+=)?+(?>\S*?(?:@|%40))(?>\S*?(?:\.|%2E))\S*\w|pts_(?:live|dev)_\w+", re.IGNORECASE
)
_COLORS = {"warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}
_PLACES_MAX = 3


class _Output(Output):
    """Where this process writes, and how. What goes well may wait for other lines of the same moment."""

    part = "points"
    as_json = True
    in_color = False

    debug = info = Output.write_soon
    warning = warn = error = critical = exception = fatal = log = msg = Output.write


output = _Output()


def logger() -> FilteringBoundLogger:
    """Return the logger of a module: `log.info("event_name", field=value)`."""
    made: FilteringBoundLogger = structlog.get_logger()
    return made


def configure(part: str, *, log_format: str = "auto", level: int = logging.INFO) -> None:
    """Make this process log as `part` of the service, its libraries included.

    Args:
        part: who logs, such as `web`; a field of every line.
        log_format: `json`, `text`, or `auto`: text when a person looks on, JSON when not.
        level: what libraries log below it is dropped.
    """
    in_terminal = sys.stderr.isatty()
    output.part = part
    output.as_json = log_format == "json" or (log_format == "auto" and not in_terminal)
    output.in_color = in_terminal
    logging.basicConfig(level=level, handlers=[_Libraries()], force=True)
    logging.captureWarnings(capture=True)


def _render(_: Any, level: str, event: MutableMapping[str, Any]) -> bytes:
    now = timestamp(datetime.now(UTC))
    name = event.pop("event")
    if output.as_json:
        known = {key: value for key, value in event.items() if value is not None}
        line = {"at": now, "level": level, "part": output.part, "event": name, **known}
        try:
            return orjson.dumps(line, default=str, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:  # Something in it is not in UTF-8, as a name in the environment need not be.
            return json.dumps(line, default=str, ensure_ascii=False).encode(errors="replace") + b"\n"
    fields = " ".join(f"{key}={_plain(value)}" for key, value in event.items() if value is not None)
    text = f"{now[11:23]} {level:<7} {name}  {fields}".rstrip()
    if output.in_color and level in _COLORS:
        text = f"{_COLORS[level]}{text}\x1b[0m"
    return text.encode(errors="replace") + b"\n"


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("\n", " ")


structlog.configure(
    processors=[merge_contextvars, _render],
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    logger_factory=lambda *_: output,
    cache_logger_on_first_use=True,
)


def kind_of(error: BaseException) -> dict[str, Any]:
    """Return what may be told of an error: its kind, and what PostgreSQL says about it without repeating values."""
    cause = getattr(error, "orig", None) or error
    told = {
        "error": type(cause).__name__,
        "sqlstate": getattr(cause, "sqlstate", None),
        "constraint": getattr(getattr(cause, "diag", None), "constraint_name", None),
    }
    return {name: value for name, value in told.items() if value is not None}


def places_of(traceback: TracebackType | None) -> list[str]:
    """Return the innermost places of a traceback, the deepest last, as `file:line`."""
    places = []
    while traceback is not None:
        places.append(f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return places[-_PLACES_MAX:]


def _message_of(record: logging.LogRecord) -> str:
    """Return what a library says; as it stands where its values do not fit, which shall not end what it was doing."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001
        return str(record.msg)


class _Libraries(logging.Handler):
    """Takes what libraries log through the standard library."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"logger": record.name}
        context = getattr(record, "data", None)
        if record.name == "celery.app.trace" and isinstance(context, Mapping):
            # Its sentence is made around the text of the exception.
            fields |= {"task": context.get("name"), "task_id": context.get("id")}
            name = "task_failed"
        else:
            name = "message"
            fields["message"] = _SECRET.sub(lambda found: f"{found[1] or ''}***", _message_of(record))
        if record.exc_info and record.exc_info[1] is not None:
            fields |= kind_of(record.exc_info[1]) | {"places": places_of(record.exc_info[2])}
        level = record.levelname.lower()
        write = getattr(output, level, output.write)  # A level of a library's own is none of structlog's.
        write(_render(None, level, merge_contextvars(None, level, {"event": name, **fields})))
