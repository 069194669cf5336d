"""The searches of the lists: their forms, sent by GET, their queries, and all that was found, as a file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import date
from functools import partial
from typing import Any

from flask import Response, request
from wtforms import EmailField, Form, SelectChoice, SelectField, StringField

from app.api_keys import Caller, StoredKey
from app.batches.batch import STATUSES
from app.batches.transaction import STATES
from app.console import files
from app.console.blueprints import current_zone
from app.console.caller import member_now
from app.console.files import save_as
from app.console.forms import say_of_form, say_why, subject
from app.console.slow_work import searches
from app.errors import InvalidAddress, InvalidRequest
from app.exports.columns import CSV
from app.exports.export import begin
from app.exports.sources import NOUNS
from app.members.members import Member
from app.pages.filters import BY_API, Page
from app.pages.parameters import id_of
from app.pages.queries import OF_PEOPLE, PageRequest, Query, next_cursor, parse_page_request, read_parameter
from app.postgres.standby import long_read
from app.reversals.reversal import STATUSES as REVERSAL_STATUSES
from app.values.addresses import parse
from app.values.texts import with_name
from app.values.timestamps import timestamp
from app.values.validation_errors import FaultsFound
from app.values.zones import day_of

_TYPED = {"autocomplete": "off"}
_DAY = {"autocomplete": "off", "type": "date"}
_ANY = SelectChoice("", "any")


def _one_of(label: str, words: Sequence[str]) -> SelectField:
    return SelectField(label, choices=[_ANY, *(SelectChoice(word, word.replace("_", " ")) for word in words)])


class ReversalSearch(Form):
    status = _one_of("Status", REVERSAL_STATUSES)
    created_from = StringField("Requested from", render_kw=_DAY)
    created_to = StringField("Requested to", render_kw=_DAY)


class _SentSearch(Form):
    """A search by who has sent something; `senders` are the members to choose from."""

    sender = SelectField("Sender")

    def __init__(self, formdata: Any, senders: Iterable[Member]) -> None:
        super().__init__(formdata)
        names = [SelectChoice(str(one.id), one.name) for one in senders]
        self.sender.choices = [_ANY, *names, SelectChoice(str(BY_API), "the API")]


class BatchSearch(_SentSearch):
    status = _one_of("Status", STATUSES)
    label = StringField("Label, or a part of it", render_kw=_TYPED)
    email = EmailField("Address of a recipient", render_kw=_TYPED)
    sender = SelectField("Sender")
    points = StringField("Points issued", render_kw=_TYPED)
    created_from = StringField("Accepted from", render_kw=_DAY)
    created_to = StringField("Accepted to", render_kw=_DAY)


class HeldSearch(Form):
    email = StringField("Address, or a part of it", render_kw=_TYPED)
    label = StringField("Label, or a part of it", render_kw=_TYPED)
    reference = StringField("Reference", render_kw=_TYPED)
    created_from = StringField("Issued from", render_kw=_DAY)
    created_to = StringField("Issued to", render_kw=_DAY)


class TransactionSearch(_SentSearch):
    email = StringField("Address, or a part of it", render_kw=_TYPED)
    label = StringField("Label, or a part of it", render_kw=_TYPED)
    reference = StringField("Reference", render_kw=_TYPED)
    state = _one_of("State", STATES)
    sender = SelectField("Sender")
    points = StringField("Points", render_kw=_TYPED)
    created_from = StringField("Issued from", render_kw=_DAY)
    created_to = StringField("Issued to", render_kw=_DAY)


# What is offered: all of a hundred, and the statuses that a caller meets.
_ANSWERS = (
    *("2xx", "4xx", "5xx"),
    *map(str, (200, 201, 202, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 503)),
)


class RequestSearch(Form):
    """A search by what programs have called; `keys` are the keys to choose from."""

    request_id = StringField("Request id", render_kw=_TYPED)
    batch = StringField("Batch", render_kw=_TYPED)
    status = _one_of("Status", _ANSWERS)
    api_key = SelectField("Key")
    created_from = StringField("Called from", render_kw=_DAY)
    created_to = StringField("Called to", render_kw=_DAY)

    def __init__(self, formdata: Any, keys: Iterable[StoredKey]) -> None:
        super().__init__(formdata)
        named = [SelectChoice(str(key.id), with_name(f"{key.id} ({key.start}…)", key.name)) for key in keys]
        self.api_key.choices = [_ANY, *named]


_ROWS = "50"
_FIRST_OF_DAY, _LAST_OF_DAY = 0, 1
# The parameters that a field of a form stands for.
_NAMES = {"email_part": "email", "label_part": "label"}
_UNKNOWN = "The address of this page asks for something that this list does not know. Show all, and search again."


def _asked_of(
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


def listed(
    kind: str,
    who: Caller,
    form: Form,
    page_of: Callable[..., Page[Any]],
    totals_of: Callable[..., Any] | None = None,
    fixed: Mapping[str, str] | None = None,
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the rows of the page that a form asks for, none if it has faults, and what the templates of lists take."""
    asked = _asked_of(kind, who, form, fixed)
    page: Page[Any] = Page([], None)
    totals, of = None, {"filters": asked.filters, "limit": asked.limit}
    # Of one address the points are not those of its batches.
    has_totals = totals_of and asked.start is None and (kind != "batches" or asked.filters.email_key is None)
    if not form.errors:
        with nullcontext() if kind == "reversals" else searches.turn():  # There are few reversals.
            page = long_read(partial(page_of, start=asked.start, **of))
            if totals_of and has_totals and any(text.strip() for text in request.args.values()):
                totals = long_read(partial(totals_of, first=page, **of))
    cursor = next_cursor(kind, asked, page)
    return page.rows, {"form": form, "next_cursor": cursor, "totals": totals, "asked": request.args}


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


def found_file(kind: str, form: Form, fixed: Mapping[str, str] | None = None) -> Response:
    """Answer with the rows of a list that match what a form asks for, oldest first.

    The parameter `after` has it go on behind a row, the last of a file that broke off.

    Raises:
        InvalidRequest: something is asked for in a wrong way.
        NotFound: there is no such row.
    """
    asked = _asked_of(kind, member_now(), form, fixed, beside=("after",))
    if form.errors:
        raise InvalidRequest(form.errors)
    faults = FaultsFound()
    after = read_parameter(request.args.to_dict(flat=False), "after", id_of(NOUNS[kind]), faults)
    faults.raise_if_any()
    export = begin(kind, CSV, asked.filters, after=after)

    def content() -> Iterator[bytes]:
        if after is None:
            yield files.MARK.encode()
        yield from export.content(searches.turn_of_many)

    return save_as(Response(content(), content_type="text/csv; charset=utf-8"), f"{kind}.csv")
