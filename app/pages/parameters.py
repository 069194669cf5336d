"""The values of the parameters of the lists: each is read from its text, or its fault said."""

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

from app.batches.accept import IDEMPOTENCY_KEY
from app.errors import InvalidAddress
from app.pages import cursors
from app.scope import OPERATOR, AskedAuthor
from app.settings import INT64_MAX
from app.values import addresses
from app.values.headers import REQUEST_ID, is_request_id, trace_id_of
from app.values.texts import LABEL_LENGTH_MAX, REFERENCE, REFERENCE_LENGTH_MAX, shown
from app.values.timestamps import TIMESTAMP_FORM, parse_timestamp

LIMIT_DEFAULT, LIMIT_MAX = 100, 1_000

# The forms of some parameters, as regular expressions for JSON Schema.
FORMS = {
    "created_from": TIMESTAMP_FORM,
    "idempotency_key": IDEMPOTENCY_KEY.pattern,
    "cursor": r"^[A-Za-z0-9_-]{38}$",
    "request_id": f"^{REQUEST_ID}$",
    "author": r"^((member|platform_key)(:[1-9][0-9]{0,18})?|operator(:[!-~]{1,100})?)$",
    "status of an answer": r"^[2-5]([0-9]{2}|xx)$",
    "day": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
}

_STATUS_OF_ANSWER = re.compile(FORMS["status of an answer"])
_DAY = re.compile(FORMS["day"])
_AUTHOR = re.compile(FORMS["author"])
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
flag = word_of("true or false", lambda text: text.lower() in ("true", "false"), lambda text: text.lower() == "true")
idempotency_key = word_of("1 to 255 visible ASCII characters", IDEMPOTENCY_KEY.fullmatch)
label = word_of(_LABEL, _is_label)
# Normalised addresses are in lower case.
part_of_address = word_of(_LABEL, _is_label, str.lower)
part_of_label = word_of(_LABEL, _is_label, _lower_as_in_sql)
status_of_answer = word_of("a status such as 403, or 4xx for a hundred of them", _STATUS_OF_ANSWER.fullmatch)
request_id = word_of("1 to 128 letters, digits or ._:/+=@-", is_request_id, trace_id_of)
author = word_of(_AUTHORS, _is_author, _author)
reference = word_of(f"1 to {REFERENCE_LENGTH_MAX} visible characters", REFERENCE.fullmatch)


def email_key(text: str) -> str:
    try:
        return addresses.parse(text).key
    except InvalidAddress as error:
        hint = " A + in an address is written %2B." if " " in text.strip() else ""
        raise ParameterFault(f"{error.sentence}{hint}") from None


def first_moment(text: str) -> datetime:
    """Read a lower bound. Rows have six decimals; a bound with more is rounded up to the next microsecond."""
    return _moment(text, round_up=True)


def last_moment(text: str) -> datetime:
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
    if not _DAY.fullmatch(text):  # Python reads other forms too, such as that of a week.
        raise fault
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise fault from None


def cursor(text: str) -> str:
    if not text:  # Otherwise a program that has lost its cursor would read the list from the start again and again.
        raise ParameterFault(f"{NO_CURSOR}, and is left out for the first page.")
    if not cursors.has_the_form(text):
        raise ParameterFault(f"{NO_CURSOR}.")
    return text
