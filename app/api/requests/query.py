"""The query of the request: its parameters, each with all its values; and those of the logs and of the statement."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from urllib.parse import parse_qs

from flask import request

from app.events.event_types import TYPES, types_like
from app.pages.parameters import LIMIT_DEFAULT, ParameterFault, day, integer_of, limit_of
from app.pages.queries import Query, read_parameter
from app.settings import INT64_MAX
from app.values.texts import in_utf8, shown
from app.values.validation_errors import FaultsFound


def query() -> Query:
    """Return the parameters of the request.

    Werkzeug would read a byte that is not UTF-8 as the text of its escape, and so a filter by another value.
    """
    written = request.environ.get("QUERY_STRING", "").encode("latin-1").decode(errors="surrogateescape")
    values_of = parse_qs(written, keep_blank_values=True, errors="surrogateescape")
    return {in_utf8(name): values for name, values in values_of.items()}


def refuse_parameters() -> None:
    """Refuse every parameter, for a call that takes none: nothing that a caller sends is ignored.

    Raises:
        InvalidRequest: there are parameters; each is a fault under its name.
    """
    if request.environ.get("QUERY_STRING"):
        faults = FaultsFound()
        faults.add_unknown("parameter", query(), (), whole="query")
        faults.raise_if_any()


PARAMETERS = ("after", "types", "limit", "wait")
WAIT_MAX_S = 25
# Enough for every type, and for patterns beside them.
TYPES_LENGTH_MAX = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class EventsRequest:
    """A valid request for events: those after the sequence `after` (None: from the oldest kept), of these types."""

    after: int | None
    types: list[str] | None
    limit: int
    wait_s: int


def parse_events_request(query: Query, known: Sequence[str] = TYPES) -> EventsRequest:
    """Read the query of a log; `known` are the types of its events.

    Raises:
        InvalidRequest: with every fault of the query, each under its parameter.
    """
    faults = FaultsFound()
    faults.add_unknown("parameter", query, PARAMETERS, whole="query")
    after = read_parameter(query, "after", integer_of("the sequence of an event, or 0", 0, INT64_MAX), faults)
    types = read_parameter(query, "types", partial(_types, known=known), faults)
    limit = read_parameter(query, "limit", limit_of, faults)
    seconds = integer_of(f"an integer of seconds from 0 to {WAIT_MAX_S}", 0, WAIT_MAX_S)
    wait_s = read_parameter(query, "wait", seconds, faults)
    faults.raise_if_any()
    return EventsRequest(after=after, types=types, limit=limit or LIMIT_DEFAULT, wait_s=wait_s or 0)


def _types(text: str, *, known: Sequence[str]) -> list[str]:
    if len(text) > TYPES_LENGTH_MAX:
        raise ParameterFault(f"must have at most {TYPES_LENGTH_MAX} characters, but has {len(text)}.")
    words = text.split(",")
    found: set[str] = set()
    for place, word in enumerate(words):
        meant = types_like(word, known)
        if not meant:
            rule = "must be types with commas between them, * for any part of one"
            raise ParameterFault(f"{rule}, but one is {shown(word)}; the types are {', '.join(known)}.")
        if word in words[:place]:
            raise ParameterFault(f"must have each type once, but has {shown(word)} twice.")
        found.update(meant)
    return [kind for kind in known if kind in found]


def parse_statement_request(query: Query) -> tuple[date, date]:
    """Read the query of a statement: its first and its last day.

    Raises:
        InvalidRequest: with every fault of the query, each under its parameter.
    """
    faults = FaultsFound()
    faults.add_unknown("parameter", query, ("from", "to"), whole="query")
    first, last = (read_parameter(query, name, day, faults) for name in ("from", "to"))
    for name in ("from", "to"):
        if name not in query:
            faults.add(name, f"The {name} parameter is required.")
    faults.raise_if_any()
    assert first is not None, "what is given and has no fault was read"
    assert last is not None, "the same"
    return first, last
