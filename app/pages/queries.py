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

# What `status` is in the lists of something else than batches.
_STATUS_OF = {"reversals": parameters.one_of(REVERSAL_STATUSES), "requests": parameters.status_of_answer}

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class PageRequest:
    """A valid request for one page of a list."""

    filters: Filters
    start: CursorPosition | None
    limit: int


def parse_page_request(
    kind: str,
    query: Query,
    who: Caller | None,
    *,
    organization_id: int = 0,
    webhook_id: int | None = None,
    user_id: int | None = None,
    also: Sequence[str] = (),
) -> PageRequest:
    """Read the query of a list.

    Args:
        kind: the list, one of `PARAMETERS`. A cursor is valid in one list only.
        who: the caller; None: the platform.
        organization_id: the organization of one of the platform's lists; 0: the list is of all.
        webhook_id: the webhook of a list of deliveries.
        user_id: the user of a list of entries.
        also: the parameters that this caller has beside those of the list.

    Raises:
        InvalidRequest: with every fault of the query, each under its parameter.
    """
    faults = FaultsFound()
    known = (*PARAMETERS[kind], *also)
    faults.add_unknown("parameter", query, known, whole="query")

    def read(name: str, parse: Callable[[str], _Value]) -> _Value | None:
        return read_parameter(query, name, parse, faults) if name in known else None

    limit = read("limit", limit_of)
    of_platform = read("organization", parameters.id_of("an organization")) or organization_id
    filters = Filters(
        organization_id=of_platform if who is None else who.organization.id,
        sandbox=bool(read("sandbox", parameters.flag)) if who is None else who.sandbox,
        email_key=read("email", parameters.email_key),
        batch_id=read("batch", parameters.id_of("a batch")),
        created_from=read("created_from", parameters.first_moment),
        created_to=read("created_to", parameters.last_moment),
        debited=read("debited", parameters.flag),
        credited=read("credited", parameters.flag),
        allocated=read("allocated", parameters.flag),
        idempotency_key=read("idempotency_key", parameters.idempotency_key),
        label=read("label", parameters.label),
        status=read("status", _STATUS_OF.get(kind, parameters.one_of(STATUSES))),
        reference=read("reference", parameters.reference),
        state=read("state", parameters.one_of(STATES)),
        user_id=read("user", parameters.id_of("a user")) if user_id is None else user_id,
        external_id=read("external_id", parameters.reference),
        webhook_id=webhook_id,
        request_id=read("request_id", parameters.request_id),
        api_key_id=read("api_key", parameters.id_of("a key")),
        by=read("by", parameters.author),
        email_part=read("email_part", parameters.part_of_address),
        label_part=read("label_part", parameters.part_of_label),
        sender=read("sender", integer_of("the id of a member, or 0 for the API", BY_API, INT64_MAX)),
        points=read("points", integer_of("a whole number of points, digits only", 1, INT64_MAX)),
    )
    cursor = read("cursor", parameters.cursor)
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
