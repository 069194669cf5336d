"""The query of a list's form, read by the rules of the API's lists, and by some of a person's own."""

from collections.abc import Mapping

from flask import request

from app.api_keys import Caller
from app.errors import InvalidAddress, InvalidRequest
from app.pages.queries import OF_PEOPLE, PageRequest, Query, parse_page_request
from app.values.addresses import parse

_ROWS = "50"
_DAY_BEGINS, _DAY_ENDS = "T00:00:00Z", "T23:59:59.999999Z"
# A field of a form, and the parameters that it stands for.
_FIELDS = {"email_part": "email", "label_part": "label"}


def asked_of(kind: str, who: Caller, fixed: Mapping[str, str] | None = None) -> tuple[PageRequest, dict[str, str]]:
    """Return the requested page, and the faults by field. With faults it is the first page without filters.

    A form also sends its empty fields, which are ignored. A day means the whole day in UTC.
    """
    given = {name: text.strip() for name, text in request.args.items() if text.strip()}
    for name, moment in (("created_from", _DAY_BEGINS), ("created_to", _DAY_ENDS)):
        if len(given.get(name, "")) == len("2026-01-31"):
            given[name] += moment
    if "points" in given:
        given["points"] = "".join(given["points"].split()).replace(",", "")
    if "label" in given:
        given["label_part"] = given.pop("label")
    if kind == "transactions" and "email" in given and not _is_address(given["email"]):
        given["email_part"] = given.pop("email")
    always = {"limit": _ROWS, **(fixed or {})}
    also = () if kind == "reversals" else OF_PEOPLE
    try:
        return parse_page_request(kind, _query(given | always), who, also=also), {}
    except InvalidRequest as error:
        faults = {_FIELDS.get(name, name): _of_a_field(name, found[0]) for name, found in error.faults.items()}
        return parse_page_request(kind, _query(always), who), faults


def is_searched(asked: Mapping[str, str]) -> bool:
    """Tell whether the form of a list is filled in, beyond the position in it."""
    return any(text.strip() for name, text in asked.items() if name != "cursor")


def _is_address(text: str) -> bool:
    """Tell whether a text is a whole address, which an index finds; anything else is a part of one."""
    try:
        parse(text)
    except InvalidAddress:
        return False
    return True


def _query(parameters: Mapping[str, str]) -> Query:
    return {name: [text] for name, text in parameters.items()}


def _of_a_field(name: str, sentence: str) -> str:
    """Return a fault's sentence for a person, who sees a field and not a parameter."""
    about = f"The {name} parameter "
    return f"It {sentence.removeprefix(about)}" if sentence.startswith(about) else sentence
