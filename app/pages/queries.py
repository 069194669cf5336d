"""The queries of the lists, such as `GET /v1/batches`, parsed and checked.

One answer reports every fault, each under the name of its parameter. An unknown parameter is a fault too.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from app.api_keys import Caller
from app.batches.accept import IDEMPOTENCY_KEY
from app.batches.read import STATES, STATUSES
from app.errors import InvalidAddress
from app.pages import cursors
from app.pages.filters import BY_API, CursorPosition, Filters, Page
from app.reversals.read import STATUSES as REVERSAL_STATUSES
from app.settings import INT64_MAX
from app.values import addresses
from app.values.texts import LABEL_LENGTH_MAX, REFERENCE, REFERENCE_LENGTH_MAX, is_utf8, shown
from app.values.timestamps import TIMESTAMP_FORM, parse_timestamp
from app.values.validation_errors import FaultsFound

LIMIT_DEFAULT, LIMIT_MAX = 100, 1_000

# The parameters of each list.
_OF_BOTH = ("limit", "cursor", "email", "batch", "created_from", "created_to", "debited", "credited", "allocated")
PARAMETERS = {
    "transactions": (*_OF_BOTH, "reference", "state", "user"),
    "batches": (*_OF_BOTH, "idempotency_key", "label", "status"),
    "reversals": ("limit", "cursor", "created_from", "created_to", "idempotency_key", "status"),
    "deliveries": ("limit", "cursor"),
    "users": ("limit", "cursor", "email", "external_id"),
    "organizations": ("limit", "cursor"),
    "refills": ("limit", "cursor", "sandbox"),
}

# What the console adds to the lists of the interface.
OF_PEOPLE = ("email_part", "label_part", "sender", "points")

# The forms of some parameters, as regular expressions for JSON Schema.
FORMS = {
    "created_from": TIMESTAMP_FORM,
    "idempotency_key": IDEMPOTENCY_KEY.pattern,
    "cursor": r"^[A-Za-z0-9_-]{38}$",
}

_DIGITS = re.compile(r"[0-9]{1,19}")
_NO_CURSOR = "must be the next_cursor of an earlier answer"

# The parameters of a query, each with all its values. A byte that is not UTF-8 is a lone surrogate.
Query = Mapping[str, Sequence[str]]

_Value = TypeVar("_Value")


class ParameterFault(Exception):
    """A value is at fault; the text says what it must be, and completes “The <name> parameter …”."""


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
    also: Sequence[str] = (),
) -> PageRequest:
    """Read the query of a list.

    Args:
        kind: the list, one of `PARAMETERS`. A cursor is valid in one list only.
        who: the caller; None: the platform.
        organization_id: the organization of one of the platform's lists; 0: the list is of all.
        webhook_id: the webhook of a list of deliveries.
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
    filters = Filters(
        organization_id=organization_id if who is None else who.organization.id,
        sandbox=bool(read("sandbox", _flag)) if who is None else who.sandbox,
        email_key=read("email", _email_key),
        batch_id=read("batch", _id_of("batch")),
        created_from=read("created_from", _first_moment),
        created_to=read("created_to", _last_moment),
        debited=read("debited", _flag),
        credited=read("credited", _flag),
        allocated=read("allocated", _flag),
        idempotency_key=read("idempotency_key", _idempotency_key),
        label=read("label", _label),
        status=read("status", _one_of(REVERSAL_STATUSES if kind == "reversals" else STATUSES)),
        reference=read("reference", _reference),
        state=read("state", _one_of(STATES)),
        user_id=read("user", _id_of("user")),
        external_id=read("external_id", _reference),
        webhook_id=webhook_id,
        email_part=read("email_part", _part_of_address),
        label_part=read("label_part", _part_of_label),
        sender=read("sender", integer_of("the id of a member, or 0 for the API", BY_API, INT64_MAX)),
        points=read("points", integer_of("a whole number of points, digits only", 1, INT64_MAX)),
    )
    cursor = read("cursor", _cursor)
    # A cursor can be compared only with filters that have no fault.
    faults.raise_if_any()
    start = None if cursor is None else cursors.decode(kind, filters, cursor)
    if cursor is not None and start is None:
        faults.add("cursor", f"The cursor parameter {_NO_CURSOR} with the same filters.")
    faults.raise_if_any()
    return PageRequest(filters=filters, start=start, limit=LIMIT_DEFAULT if limit is None else limit)


def read_parameter(query: Query, name: str, parse: Callable[[str], _Value], faults: FaultsFound) -> _Value | None:
    """Read one parameter; None if it is absent, or has a fault, which is added."""
    values = query.get(name, [])
    if len(values) > 1:
        faults.add(name, f"The {name} parameter must be given once, but comes {len(values)} times.")
    elif values and not is_utf8(values[0]):
        faults.add(name, f"The {name} parameter must be in UTF-8, but is not.")
    elif values:
        try:
            return parse(values[0])
        except ParameterFault as fault:
            faults.add(name, f"The {name} parameter {fault}")
    return None


def next_cursor(kind: str, asked: PageRequest, page: Page[Any]) -> str | None:
    """Return the cursor of the page after this one; None at the end of the list."""
    return None if page.next is None else cursors.encode(kind, asked.filters, page.next)


def integer_of(rule: str, lowest: int, highest: int) -> Callable[[str], int]:
    """Return the parser of a parameter that is an integer within bounds; `rule` completes “must be …”."""

    def read(text: str) -> int:
        if not _DIGITS.fullmatch(text) or not lowest <= int(text) <= highest:
            raise ParameterFault(f"must be {rule}, but is {shown(text)}.")
        return int(text)

    return read


limit_of = integer_of(f"an integer from 1 to {LIMIT_MAX}", 1, LIMIT_MAX)


def _email_key(text: str) -> str:
    try:
        return addresses.parse(text).key
    except InvalidAddress as error:
        hint = " A + in an address is written %2B." if " " in text.strip() else ""
        raise ParameterFault(f"{error.sentence}{hint}") from None


def _id_of(noun: str) -> Callable[[str], int]:
    """Return the parser of a parameter that is the id of a batch or a user."""
    return integer_of(f"the id of a {noun}, an integer of at least 1", 1, INT64_MAX)


def _first_moment(text: str) -> datetime:
    """Read a lower bound. Rows have six decimals; a bound with more is rounded up to the next microsecond."""
    return _moment(text, round_up=True)


def _last_moment(text: str) -> datetime:
    """Read an upper bound. Rows have six decimals; a bound with more is rounded down to the microsecond."""
    return _moment(text, round_up=False)


def _moment(text: str, *, round_up: bool) -> datetime:
    try:
        return parse_timestamp(text, round_up=round_up)
    except ValueError as error:
        hint = " A + before a zone is written %2B." if " " in text else ""
        raise ParameterFault(f"{error}{hint}") from None


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):  # Python's own spelling is True.
        raise ParameterFault(f"must be true or false, but is {shown(text)}.")
    return text.lower() == "true"


def _idempotency_key(text: str) -> str:
    if not IDEMPOTENCY_KEY.fullmatch(text):
        raise ParameterFault(f"must be 1 to 255 visible ASCII characters, but is {shown(text)}.")
    return text


def _label(text: str) -> str:
    if not 1 <= len(text) <= LABEL_LENGTH_MAX or "\0" in text:
        raise ParameterFault(f"must be 1 to {LABEL_LENGTH_MAX} characters, none of them NUL, but is {shown(text)}.")
    return text


def _part_of_address(text: str) -> str:
    """Read a part of an address, in lower case, as normalised addresses are."""
    return _label(text).lower()


def _part_of_label(text: str) -> str:
    """Read a part of a label. Only ASCII letters are made small, as by PostgreSQL's `lower` of our texts."""
    return "".join(one.lower() if one.isascii() else one for one in _label(text))


def _one_of(known: Sequence[str]) -> Callable[[str], str]:
    """Return the parser of a parameter that is one of these words."""

    def read(text: str) -> str:
        if text not in known:
            raise ParameterFault(f"must be one of {', '.join(known)}, but is {shown(text)}.")
        return text

    return read


def _reference(text: str) -> str:
    if not REFERENCE.fullmatch(text):
        raise ParameterFault(f"must be 1 to {REFERENCE_LENGTH_MAX} visible characters, but is {shown(text)}.")
    return text


def _cursor(text: str) -> str:
    if not text:  # Otherwise a program that has lost its cursor would read the list from the start again and again.
        raise ParameterFault(f"{_NO_CURSOR}, and is left out for the first page.")
    if not cursors.has_the_form(text):
        raise ParameterFault(f"{_NO_CURSOR}.")
    return text
