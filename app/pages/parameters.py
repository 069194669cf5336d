"""The parameters of the lists, each said once: how it is read from its text, what it filters, what callers read."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from app.actions.log import ABOUT
from app.batches.accept import IDEMPOTENCY_KEY
from app.batches.batch import STATUSES
from app.batches.transaction import STATES
from app.errors import InvalidAddress
from app.pages import cursors
from app.pages.filters import BY_API
from app.reversals.reversal import STATUSES as REVERSAL_STATUSES
from app.scope import OPERATOR, AskedAuthor
from app.settings import INT64_MAX
from app.values import addresses
from app.values.headers import REQUEST_ID, is_request_id, trace_id_of
from app.values.texts import LABEL_LENGTH_MAX, REFERENCE, REFERENCE_LENGTH_MAX, shown
from app.values.timestamps import TIMESTAMP_FORM, parse_timestamp

LIMIT_DEFAULT, LIMIT_MAX = 100, 1_000

DAY = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
_STATUS_OF_ANSWER = re.compile(r"^[2-5]([0-9]{2}|xx)$")
_AUTHOR = re.compile(r"^((member|platform_key)(:[1-9][0-9]{0,18})?|operator(:[!-~]{1,100})?)$")
_DIGITS = re.compile(r"[0-9]{1,19}")
NO_CURSOR = "must be the next_cursor of an earlier answer"


class ParameterFault(Exception):
    """A value is at fault; the text says what it must be, and completes “The <name> parameter …”."""


def word_of(rule: str, fits: Callable[[str], object], value: Callable[[str], Any] = str) -> Callable[[str], Any]:
    """Return the parser of a parameter: a text that `fits`, as its value. `rule` completes “must be …”."""

    def read(text: str) -> Any:
        if not fits(text):
            raise ParameterFault(f"must be {rule}, but is {shown(text)}.")
        return value(text)

    return read


def integer_of(rule: str, lowest: int, highest: int) -> Callable[[str], int]:
    """Return the parser of a parameter that is an integer within bounds; `rule` completes “must be …”."""
    return word_of(rule, lambda text: _DIGITS.fullmatch(text) and lowest <= int(text) <= highest, int)


def id_of(noun: str) -> Callable[[str], int]:
    """Return the parser of a parameter that is the id of something: `a batch`, `an organization`."""
    return integer_of(f"the id of {noun}, an integer of at least 1", 1, INT64_MAX)


def one_of(known: Sequence[str]) -> Callable[[str], str]:
    """Return the parser of a parameter that is one of these words."""
    return word_of(f"one of {', '.join(known)}", known.__contains__)


def _is_label(text: str) -> bool:
    return 1 <= len(text) <= LABEL_LENGTH_MAX and "\0" not in text


def _lower_as_in_sql(text: str) -> str:
    """Make ASCII letters small and no others, as PostgreSQL's `lower` does with our texts."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def _is_author(text: str) -> bool:
    kind, _, which = text.partition(":")
    return bool(_AUTHOR.fullmatch(text)) and (kind == OPERATOR or not which or int(which) <= INT64_MAX)


def _author(text: str) -> AskedAuthor:
    kind, _, which = text.partition(":")
    return AskedAuthor(kind, None if not which else which if kind == OPERATOR else int(which))


_LABEL = f"1 to {LABEL_LENGTH_MAX} characters, none of them NUL"
_AUTHORS = "member, platform_key or operator, or one of them such as member:7, platform_key:3 or operator:ada"

limit_of = integer_of(f"an integer from 1 to {LIMIT_MAX}", 1, LIMIT_MAX)
_flag = word_of("true or false", lambda text: text.lower() in ("true", "false"), lambda text: text.lower() == "true")
_idempotency_key = word_of("1 to 255 visible ASCII characters", IDEMPOTENCY_KEY.fullmatch)
_label = word_of(_LABEL, _is_label)
_LABEL_FORM = {"type": "string", "minLength": 1, "maxLength": LABEL_LENGTH_MAX}
_by = word_of(_AUTHORS, _is_author, _author)
_BY = (
    "By whom: a kind (`member`, `platform_key`, `operator`), or one of it: `member:7`, `platform_key:3`,"
    " `operator:ada`."
)
_reference = word_of(f"1 to {REFERENCE_LENGTH_MAX} visible characters", REFERENCE.fullmatch)


def _email_key(text: str) -> str:
    try:
        return addresses.parse(text).key
    except InvalidAddress as error:
        hint = " A + in an address is written %2B." if " " in text.strip() else ""
        raise ParameterFault(f"{error.sentence}{hint}") from None


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


def day(text: str) -> date:
    fault = ParameterFault(f"must be a day of the calendar, such as 2026-01-31, but is {shown(text)}.")
    if not DAY.fullmatch(text):  # Python reads other forms too, such as that of a week.
        raise fault
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise fault from None


def _cursor(text: str) -> str:
    if not text:  # Otherwise a program that has lost its cursor would read the list from the start again and again.
        raise ParameterFault(f"{NO_CURSOR}, and is left out for the first page.")
    if not cursors.has_the_form(text):
        raise ParameterFault(f"{NO_CURSOR}.")
    return text


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """A parameter of a list.

    Args:
        read: its value from its text, or a `ParameterFault`.
        about, schema, example: what callers read; the console's own have none.
        filter: the attribute of `Filters` that it sets.
        equals: the column of the list's own table that it must equal, if it sets no attribute.
    """

    name: str
    read: Callable[[str], Any]
    about: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    filter: str = ""
    equals: str = ""
    example: str = ""


def _text(**rules: Any) -> dict[str, Any]:
    return {"type": "string", **rules}


_BOOLEAN = {"type": "boolean"}
_AN_ID = {"type": "integer", "format": "int64", "minimum": 1, "maximum": INT64_MAX}
_REFERENCE_FORM = _text(minLength=1, maxLength=REFERENCE_LENGTH_MAX, pattern=REFERENCE.pattern)
_LIMITS = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT}
_ZONED = "ISO 8601 with a zone: an offset is whole quarters of an hour from `-12:00` to `+14:00`."


def _id(name: str, noun: str, about: str, filter_: str) -> Parameter:
    return Parameter(name, id_of(noun), about, _AN_ID, filter_)


def _email(about: str) -> Parameter:
    return Parameter("email", _email_key, about, _text(format="idn-email", pattern="@"), "email_key")


def _created(what: str) -> tuple[Parameter, Parameter]:
    """Return the parameters of a period; `what` says what happened then."""
    form = _text(format="date-time", pattern=TIMESTAMP_FORM)
    return (
        Parameter("created_from", _first_moment, f"{what} at this time or later. {_ZONED}", form, "created_from"),
        Parameter("created_to", _last_moment, f"{what} at this time or earlier. {_ZONED}", form, "created_to"),
    )


def _flags(about: str) -> list[Parameter]:
    """Return the parameters of the three flags; `{}` in `about` stands for the flag's name."""
    names = ("debited", "credited", "allocated")
    return [Parameter(name, _flag, about.format(name), _BOOLEAN, name) for name in names]


def _status(words: Sequence[str]) -> Parameter:
    return Parameter("status", one_of(words), "In this state.", _text(enum=list(words)), equals="status")


LIMIT = Parameter("limit", limit_of, "At most this many rows.", _LIMITS)
CURSOR = Parameter("cursor", _cursor, "The `next_cursor` of the page before.", _text(pattern=r"^[A-Za-z0-9_-]{38}$"))
_PAGE = (LIMIT, CURSOR)
_KEY = Parameter(
    "idempotency_key",
    _idempotency_key,
    "Sent with this `Idempotency-Key`, as long as it is kept.",
    _text(pattern=IDEMPOTENCY_KEY.pattern),
    "idempotency_key",
)
_BATCH = _id("batch", "a batch", "Of this batch.", "batch_id")
_OF_ITEM = "Of an item with exactly this reference, in any batch."
_SANDBOX = Parameter("sandbox", _flag, "True: of the sandbox balance; else of the live one.", _BOOLEAN, "sandbox")
_ABOUT_EXTERNAL_ID = "With exactly this id of yours."
_EXTERNAL_ID = Parameter("external_id", _reference, _ABOUT_EXTERNAL_ID, _REFERENCE_FORM, equals="external_id")
_LISTS: dict[str, Sequence[Parameter]] = {
    "transactions": (
        *(*_PAGE, _email("Of this address."), _BATCH, *_created("Issued"), *_flags("With this `{}`.")),
        Parameter("reference", _reference, _OF_ITEM, _REFERENCE_FORM, "reference"),
        Parameter("state", one_of(STATES), "In this state.", _text(enum=list(STATES)), "state"),
        _id(
            "user",
            "a user",
            "Whose `recipient` is the user with this id, also at addresses that the user had before.",
            "user_id",
        ),
    ),
    "batches": (
        *(*_PAGE, _email("With a transaction of this address: issued batches only."), _BATCH, *_created("Accepted")),
        *_flags("With at least one transaction that has this `{}` and the other flags asked for."),
        _KEY,
        Parameter("label", _label, "With exactly this label.", _LABEL_FORM, equals="label"),
        _status(STATUSES),
    ),
    "reversals": (*_PAGE, *_created("Accepted"), _KEY, _status(REVERSAL_STATUSES)),
    "users": (
        *(*_PAGE, _email("Known by this address.")),
        _EXTERNAL_ID,
    ),
    "organizations": (*_PAGE, _EXTERNAL_ID),
    **dict.fromkeys(("keys", "members", "entries", "deliveries", "recipients"), _PAGE),
    "refills": (*_PAGE, _SANDBOX),
    "actions": (
        *_PAGE,
        _id("organization", "an organization", "What concerns this organization.", "organization_id"),
        Parameter("by", _by, _BY, _text(pattern=_AUTHOR.pattern), "by", example="operator"),
        *_created("Done"),
    ),
    "requests": (
        *(*_PAGE, *_created("Arrived")),
        Parameter(
            "request_id",
            word_of("1 to 128 letters, digits or ._:/+=@-", is_request_id, trace_id_of),
            "With this `X-Request-Id`.",
            _text(pattern=f"^{REQUEST_ID}$"),
            equals="request_id",
        ),
        _id("api_key", "a key", "Made with the key of this id.", "api_key_id"),
        _id("batch", "a batch", "About this batch.", "batch_id"),
        Parameter(
            "status",
            word_of("a status such as 403, or 4xx for a hundred of them", _STATUS_OF_ANSWER.fullmatch),
            "Answered with this status, such as `403`, or with any of a hundred, such as `4xx`.",
            _text(pattern=_STATUS_OF_ANSWER.pattern),
            "answered",
        ),
    ),
}
PARAMETERS: Mapping[str, Mapping[str, Parameter]] = {
    kind: {parameter.name: parameter for parameter in of} for kind, of in _LISTS.items()
}
_POINTS = integer_of("a whole number of points, digits only", 1, INT64_MAX)
_SENDER = integer_of("the id of a member, or 0 for the API", BY_API, INT64_MAX)
# What some have beside the parameters of a list: an export its mode, the console its own.
BESIDE = {
    "sandbox": _SANDBOX,
    # Normalised addresses are in lower case.
    "email_part": Parameter("email_part", word_of(_LABEL, _is_label, str.lower), filter="email_part"),
    "label_part": Parameter("label_part", word_of(_LABEL, _is_label, _lower_as_in_sql), filter="label_part"),
    "sender": Parameter("sender", _SENDER, filter="sender"),
    "points": Parameter("points", _POINTS, filter="points"),
    "about": Parameter("about", one_of(ABOUT), filter="about"),
}
