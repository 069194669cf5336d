"""The queries of the lists, such as `GET /v1/batches`, parsed and checked.

One answer reports every fault, each under the name of its parameter. An unknown parameter is a fault too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from app.api_keys import Caller
from app.batches.read import STATES, STATUSES
from app.errors import Fault
from app.pages import cursors, parameters
from app.pages.filters import BY_API, CursorPosition, Filters, Page
from app.pages.parameters import LIMIT_DEFAULT, NO_CURSOR, ParameterFault, integer_of, limit_of
from app.reversals.read import STATUSES as REVERSAL_STATUSES
from app.settings import INT64_MAX
from app.values.texts import is_utf8
from app.values.validation_errors import FaultsFound

# The parameters of each list.
_OF_BOTH = ("limit", "cursor", "email", "batch", "created_from", "created_to", "debited", "credited", "allocated")
PARAMETERS = {
    "transactions": (*_OF_BOTH, "reference", "state", "user"),
    "batches": (*_OF_BOTH, "idempotency_key", "label", "status"),
    "reversals": ("limit", "cursor", "created_from", "created_to", "idempotency_key", "status"),
    "deliveries": ("limit", "cursor"),
    "requests": ("limit", "cursor", "created_from", "created_to", "request_id", "api_key", "batch", "status"),
    "users": ("limit", "cursor", "email", "external_id"),
    "entries": ("limit", "cursor"),
    "organizations": ("limit", "cursor"),
    "refills": ("limit", "cursor", "sandbox"),
    "actions": ("limit", "cursor", "organization", "by", "created_from", "created_to"),
    "keys": ("limit", "cursor"),
}

# What the console adds to the lists of the interface.
OF_PEOPLE = ("email_part", "label_part", "sender", "points")

# The parameters of a query, each with all its values. A byte that is not UTF-8 is a lone surrogate.
Query = Mapping[str, Sequence[str]]

# Each parameter that filters: the filter that it sets, and how it is read.
_FILTERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "organization": ("organization_id", parameters.id_of("an organization")),
    "sandbox": ("sandbox", parameters.flag),
    "email": ("email_key", parameters.email_key),
    "batch": ("batch_id", parameters.id_of("a batch")),
    "created_from": ("created_from", parameters.first_moment),
    "created_to": ("created_to", parameters.last_moment),
    "debited": ("debited", parameters.flag),
    "credited": ("credited", parameters.flag),
    "allocated": ("allocated", parameters.flag),
    "idempotency_key": ("idempotency_key", parameters.idempotency_key),
    "label": ("label", parameters.label),
    "status": ("status", parameters.one_of(STATUSES)),
    "reference": ("reference", parameters.reference),
    "state": ("state", parameters.one_of(STATES)),
    "user": ("user_id", parameters.id_of("a user")),
    "external_id": ("external_id", parameters.reference),
    "request_id": ("request_id", parameters.request_id),
    "api_key": ("api_key_id", parameters.id_of("a key")),
    "by": ("by", parameters.author),
    "email_part": ("email_part", parameters.part_of_address),
    "label_part": ("label_part", parameters.part_of_label),
    "sender": ("sender", integer_of("the id of a member, or 0 for the API", BY_API, INT64_MAX)),
    "points": ("points", integer_of("a whole number of points, digits only", 1, INT64_MAX)),
}
# What `status` is in the lists of something else than batches.
_STATUS_OF: dict[tuple[str, str], Callable[[str], Any]] = {
    ("reversals", "status"): parameters.one_of(REVERSAL_STATUSES),
    ("requests", "status"): parameters.status_of_answer,
}

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class PageRequest:
    """A valid request for one page of a list."""

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
    known = (*PARAMETERS[kind], *also)
    faults.add_unknown("parameter", query, known, whole="query")

    limit = read_parameter(query, "limit", limit_of, faults)
    values = {
        name: read_parameter(query, parameter, _STATUS_OF.get((kind, parameter), parse), faults)
        for parameter, (name, parse) in _FILTERS.items()
        if parameter in known
    }
    chosen: dict[str, Any] = {"organization_id": 0, "sandbox": False, **of}
    chosen |= {name: value for name, value in values.items() if value is not None}
    if who is not None:
        chosen |= {"organization_id": who.organization.id, "sandbox": who.sandbox}
    filters = Filters(**chosen)
    cursor = read_parameter(query, "cursor", parameters.cursor, faults)
    # A cursor can be compared only with filters that have no fault.
    faults.raise_if_any()
    start = None if cursor is None else cursors.decode(kind, filters, cursor)
    if cursor is not None and start is None:
        faults.add("cursor", f"The cursor parameter {NO_CURSOR} with the same filters.")
    faults.raise_if_any()
    return PageRequest(filters=filters, start=start, limit=LIMIT_DEFAULT if limit is None else limit)


def read_parameter(query: Query, name: str, parse: Callable[[str], _Value], faults: FaultsFound) -> _Value | None:
    """Read one parameter; None if it is absent, or has a fault, which is added."""
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


def next_cursor(kind: str, asked: PageRequest, page: Page[Any]) -> str | None:
    """Return the cursor of the page after this one; None at the end of the list."""
    return None if page.next is None else cursors.encode(kind, asked.filters, page.next)
