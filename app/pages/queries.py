"""The queries of the lists, such as `GET /v1/batches`, parsed and checked.

One answer reports every fault, each under the name of its parameter. An unknown parameter is a fault too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from app.api_keys import Caller
from app.errors import Fault
from app.pages import cursors
from app.pages.filters import CursorPosition, Filters, Page
from app.pages.parameters import BESIDE, CURSOR, LIMIT, LIMIT_DEFAULT, NO_CURSOR, PARAMETERS, ParameterFault
from app.values.texts import is_utf8
from app.values.validation_errors import FaultsFound

# What the console adds to the lists of batches and transactions.
OF_PEOPLE = ("email_part", "label_part", "sender", "points")

_ROUNDED = timedelta(microseconds=1)

# The parameters of a query, each with all its values. A byte that is not UTF-8 is a lone surrogate.
Query = Mapping[str, Sequence[str]]

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class PageRequest:
    """A valid request for a page of a list."""

    filters: Filters
    start: CursorPosition | None
    limit: int


def parse_page_request(
    kind: str, query: Query, who: Caller | None, *, also: Sequence[str] = (), **of: int
) -> PageRequest:
    """Read the query of a list.

    Args:
        kind: the list, one of `PARAMETERS`. A cursor is valid in one list only.
        who: the caller; None: the platform, whose lists are of all organizations unless `of` or the query names one.
        also: the parameters that this caller has beside those of the list.
        of: whose the list is: `organization_id`, `webhook_id` or `user_id`.

    Raises:
        InvalidRequest: with every fault of the query, each under its parameter.
    """
    faults = FaultsFound()
    known = {**PARAMETERS[kind], **{name: BESIDE.get(name) for name in also}}
    faults.add_unknown("parameter", query, tuple(known), whole="query")
    values = {
        parameter: read_parameter(query, name, parameter.read, faults)
        for name, parameter in known.items()
        if parameter is not None and parameter is not CURSOR
    }
    given = {parameter: value for parameter, value in values.items() if value is not None}
    chosen: dict[str, Any] = {"organization_id": 0, "sandbox": False, **of}
    chosen |= {parameter.filter: value for parameter, value in given.items() if parameter.filter}
    if who is not None:
        chosen |= who.scope._asdict() | {"seen_by": who.sent_by}
    filters = Filters(
        **chosen, equals={parameter.equals: value for parameter, value in given.items() if parameter.equals}
    )
    # A bound with more than six decimals is rounded to the inside, and so two that are equal may part.
    if filters.created_from and filters.created_to and filters.created_from - filters.created_to > _ROUNDED:
        for name in ("created_from", "created_to"):
            faults.add(name, "The period must not end before it begins.")
    cursor = read_parameter(query, "cursor", CURSOR.read, faults)
    # A cursor can be compared only with filters that have no fault.
    faults.raise_if_any()
    start = None if cursor is None else cursors.decode(kind, filters, cursor)
    if cursor is not None and start is None:
        faults.add("cursor", f"The cursor parameter {NO_CURSOR} with the same filters.")
    faults.raise_if_any()
    return PageRequest(filters=filters, start=start, limit=given.get(LIMIT, LIMIT_DEFAULT))


def read_parameter(query: Query, name: str, parse: Callable[[str], _Value], faults: FaultsFound) -> _Value | None:
    """Read a parameter; None if it is absent, or has a fault, which is added."""
    values, subject = query.get(name, []), f"The {name} parameter"
    if len(values) > 1:
        faults.add(name, Fault(subject, f"must be given once, but comes {len(values)} times."))
    elif values and not is_utf8(values[0]):
        faults.add(name, Fault(subject, "must be in UTF-8, but is not."))
    elif values:
        try:
            return parse(values[0])
        except ParameterFault as fault:
            faults.add(name, Fault(subject, f"{fault}"))
    return None


def next_cursor(kind: str, request: PageRequest, page: Page[Any]) -> str | None:
    """Return the cursor of the page after this; None at the end of the list."""
    return None if page.next is None else cursors.encode(kind, request.filters, page.next)
