"""The query of a list's form, read by the rules of the API's lists, and by some of a person's own."""

from collections.abc import Mapping, Sequence
from datetime import date

from flask import request
from wtforms import Form

from app.api_keys import Caller
from app.console.blueprints import current_zone
from app.console.faults import subject
from app.console.forms import say_of_form, say_why
from app.errors import InvalidAddress, InvalidRequest
from app.pages.queries import OF_PEOPLE, PageRequest, Query, parse_page_request
from app.values.addresses import parse
from app.values.timestamps import timestamp
from app.values.zones import day_of

_ROWS = "50"
_FIRST_OF_DAY, _LAST_OF_DAY = 0, 1
# The parameters that a field of a form stands for.
_NAMES = {"email_part": "email", "label_part": "label"}
_UNKNOWN = "The address of this page asks for something that this list does not know. Show all, and search again."


def asked_of(
    kind: str, who: Caller, form: Form, fixed: Mapping[str, str] | None = None, *, beside: Sequence[str] = ()
) -> PageRequest:
    """Return the requested page; with faults, which the form then says, it is the first page without filters.

    A form also sends its empty fields, which are ignored. A day means the whole day in the zone of the member.

    Args:
        fixed: parameters that are not asked for.
        beside: parameters that the view reads itself.
    """
    given = {name: text.strip() for name, text in request.args.items() if text.strip()}
    for name, moment in (("created_from", _FIRST_OF_DAY), ("created_to", _LAST_OF_DAY)):
        if name in given:
            given[name] = _whole_day(given[name], moment)
    if "points" in given:
        given["points"] = "".join(given["points"].split()).replace(",", "")
    if "label" in given:
        given["label_part"] = given.pop("label")
    if kind == "transactions" and "email" in given and not _is_address(given["email"]):
        given["email_part"] = given.pop("email")
    always = {"limit": _ROWS, **(fixed or {})}
    also = (*beside, *(OF_PEOPLE if kind in ("batches", "transactions") else ()))
    try:
        return parse_page_request(kind, _query(given | always), who, also=also)
    except InvalidRequest as error:
        _say(form, error)
        return parse_page_request(kind, _query(always), who)


def is_searched(asked: Mapping[str, str]) -> bool:
    """Tell whether the form of a list is filled in, beyond the position in it."""
    return any(text.strip() for name, text in asked.items() if name != "cursor")


def _whole_day(text: str, moment: int) -> str:
    """Return the first or the last moment of a day; any other text as it is: the rules of the lists judge it."""
    try:
        return timestamp(day_of(current_zone(), date.fromisoformat(text))[moment])
    except (ValueError, OverflowError):
        return text


def _is_address(text: str) -> bool:
    """Tell whether a text is a whole address, which an index finds; anything else is a part of one."""
    try:
        parse(text)
    except InvalidAddress:
        return False
    return True


def _query(parameters: Mapping[str, str]) -> Query:
    return {name: [text] for name, text in parameters.items()}


def _say(form: Form, error: InvalidRequest) -> None:
    """Show the faults of a query beside the fields of the form; one that is in no field is of the page's address."""
    of_fields = {name: found for name, found in error.faults.items() if _NAMES.get(name, name) in form}
    for name in {"created_from", "created_to"} & set(of_fields):
        of_fields[name] = [f"{subject(form[name].label.text)} must be a day of the calendar, such as 2026-01-31."]
    for name in {"status", "state"} & set(of_fields):
        of_fields[name] = [f"{subject(form[name].label.text)} must be one of those to choose from."]
    say_why(form, InvalidRequest(of_fields), _NAMES)
    if len(of_fields) < len(error.faults):
        say_of_form(form, _UNKNOWN)
