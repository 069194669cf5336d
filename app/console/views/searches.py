"""*Batches*, *Transactions*, *Held*, *Reversals* and *Requests*: each list with its search, and all of it as a file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

from flask import Response, g, render_template, request
from sqlalchemy import Connection
from wtforms import EmailField, SelectChoice, SelectField, StringField
from wtforms.form import BaseForm

from app import api_keys
from app.api_keys import Caller
from app.batches import payloads
from app.batches.batch import STATUSES
from app.batches.schedule import payable_of
from app.batches.transaction import HELD, STATES
from app.console import files
from app.console.blueprints import current_scope, current_zone, pages
from app.console.caller import authors_of, calling_member
from app.console.files import save_as
from app.console.forms import say_of_form, say_why, subject
from app.console.slow_work import searches
from app.errors import InvalidAddress, InvalidRequest
from app.exports.columns import CSV, KINDS
from app.exports.export import begin
from app.exports.sources import NOUNS
from app.members import members
from app.pages import batch_pages, lists, transaction_pages, waiting
from app.pages.filters import BY_API, Page
from app.pages.parameters import id_of
from app.pages.queries import OF_PEOPLE, PageRequest, Query, next_cursor, parse_page_request, read_parameter
from app.pages.waiting import Waiting
from app.postgres.database import single_statement, snapshot
from app.postgres.standby import long_read
from app.reversals.reversal import STATUSES as REVERSAL_STATUSES
from app.reversals.reversal import asked_of, taken_back_of
from app.scope import MEMBER, OPERATOR, PLATFORM_KEY
from app.values.addresses import parse
from app.values.texts import with_name
from app.values.validation_errors import FaultsFound
from app.values.zones import whole_day


class Search(NamedTuple):
    """A list of `kind`, and its search: a form that is sent by GET, with a field for each filter.

    `fixed` are filters without a field. `context_of` makes what the template takes of the rows of a page.
    """

    kind: str
    fields: Mapping[str, Any]
    page_of: Callable[..., Page[Any]]
    totals_of: Callable[..., Any] | None = None
    context_of: Callable[[Sequence[Any]], dict[str, Any]] = lambda rows: {"rows": rows}
    fixed: Mapping[str, str] | None = None

    def form(self, choices: Mapping[str, Sequence[SelectChoice]]) -> BaseForm:
        """Return the form as it was sent, with these choices."""
        form = BaseForm(self.fields)
        for name in choices:
            form[name].choices = [_ANY, *choices[name]]
        form.process(request.args)
        return form


_ANY = SelectChoice("", "any")
_NO_HINTS = {"autocomplete": "off"}


def _typed(**labels: str) -> dict[str, StringField]:
    return {name: StringField(label, render_kw=_NO_HINTS) for name, label in labels.items()}


def days_of(what: str) -> dict[str, StringField]:
    as_day = _NO_HINTS | {"type": "date"}
    return {f"created_{end}": StringField(f"{what} {end}", render_kw=as_day) for end in ("from", "to")}


def one_of(label: str, words: Sequence[str] = ()) -> SelectField:
    return SelectField(label, choices=[_ANY, *(SelectChoice(word, word.replace("_", " ")) for word in words)])


def _transactions(rows: Sequence[Any]) -> dict[str, Any]:
    return {"rows": list(zip((batch for batch, _ in rows), payloads.transaction_payloads(rows), strict=True))}


def _batches(rows: Sequence[Any]) -> dict[str, Any]:
    with single_statement() as connection:
        waiting = [batch.id for batch in rows if not batch.is_final]
        payable = payable_of(connection, waiting, organization_id=current_scope().organization_id)
        taken_back = taken_back_of(connection, [batch.id for batch in rows])
    return {"rows": rows, "taken_back": taken_back, "payable": payable}


def _reversals(rows: Sequence[Any]) -> dict[str, Any]:
    of = {"organization_id": current_scope().organization_id}
    with snapshot() as connection:
        asked = asked_of(connection, [reversal.id for reversal in rows], **of)
        return {"rows": rows, "authors": authors_of(connection, rows), "asked": asked}


def far(page_of: Callable[..., Page[Any]]) -> Callable[..., Page[Any]]:
    """Look as far back as for a person."""
    return partial(page_of, is_far=True)


_BATCH = {
    "status": one_of("Status", STATUSES),
    **_typed(label="Label, or a part of it"),
    "email": EmailField("Address of a recipient", render_kw=_NO_HINTS),
    "sender": one_of("Sender"),
    **_typed(points="Points issued"),
    **days_of("Accepted"),
}
_HELD = _typed(email="Address, or a part of it", label="Label, or a part of it", reference="Reference")
_TRANSACTION = {**_HELD, "state": one_of("State", STATES), "sender": one_of("Sender"), **_typed(points="Points")}
# What is offered: all of a hundred, and the statuses that a caller meets.
_ANSWERS = (
    *("2xx", "4xx", "5xx"),
    *map(str, (200, 201, 202, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 503)),
)
_REQUEST = {
    **_typed(request_id="Request id", batch="Batch"),
    "status": one_of("Status", _ANSWERS),
    "api_key": one_of("Key"),
    **days_of("Called"),
}
_RECIPIENT = {"email": EmailField("Address, or a part of it", render_kw=_NO_HINTS)}
_REVERSAL = {"status": one_of("Status", REVERSAL_STATUSES), **days_of("Requested")}
_ISSUED = (far(transaction_pages.page), transaction_pages.totals, _transactions)
SEARCHES = {
    "batches": Search("batches", _BATCH, far(batch_pages.page), batch_pages.totals, _batches),
    "transactions": Search("transactions", _TRANSACTION | days_of("Issued"), *_ISSUED),
    "recipient": Search("transactions", _RECIPIENT, *_ISSUED),
    "held": Search("transactions", _HELD | days_of("Issued"), *_ISSUED, fixed={"state": HELD}),
    "reversals": Search("reversals", _REVERSAL, lists.reversals, context_of=_reversals),
    "requests": Search("requests", _REQUEST, far(lists.requests)),
}


def show_search(name: str, of: Search) -> str:
    with snapshot() as connection:
        who = calling_member(connection)
        form = of.form(_choices(connection, who, of))
    rows, names = _page_found(of, who, form)
    return render_template(f"console/{name}.html", **of.context_of(rows), **names)


def _choices(connection: Connection, who: Caller, of: Search) -> dict[str, list[SelectChoice]]:
    """Return the members and the keys of the mode to choose from, where the search asks for them."""
    if "by" in of.fields:
        people = [
            (f"{MEMBER}:{member.id}", member.name) for member in members.find_all(connection, who.organization.id)
        ]
        others = [(PLATFORM_KEY, "Programs of the service"), (OPERATOR, "Operators of the service")]
        return {"by": [SelectChoice(*choice) for choice in people + others]}
    if "sender" in of.fields:
        names = {BY_API: "the API", **members.all_names(connection, who.organization.id)}
        return {"sender": [SelectChoice(str(value), name) for value, name in names.items()]}
    if "api_key" in of.fields:
        keys = [key for key in api_keys.find_all(connection, who.organization.id) if key.sandbox == who.sandbox]
        names = {key.id: with_name(f"{key.id} ({key.start}…)", key.name) for key in keys}
        return {"api_key": [SelectChoice(str(value), name) for value, name in names.items()]}
    return {}


_ROWS = "50"
# The parameters that a field of a form stands for.
_NAMES = {"email_part": "email", "label_part": "label"}
_NOT_KNOWN = "The address of this page asks for something that this list does not know. Show all, and search again."


def page_request_of(of: Search, who: Caller, form: BaseForm, *, beside: Sequence[str] = ()) -> PageRequest:
    """Return the requested page; with faults, which the form then says, it is the first page without filters.

    A form also sends its empty fields, which are ignored. A day means the whole day in the zone of the member.

    Args:
        beside: parameters that the view reads itself.
    """
    given = {name: text.strip() for name, text in request.args.items() if text.strip()}
    for name in {"created_from", "created_to"} & set(given):
        given[name] = whole_day(current_zone(), given[name], is_last=name == "created_to")
    if "points" in given:
        given["points"] = "".join(given["points"].split()).replace(",", "")
    if "label" in given:
        given["label_part"] = given.pop("label")
    if of.kind == "transactions" and "email" in given and not _is_address(given["email"]):
        given["email_part"] = given.pop("email")
    always = {"limit": _ROWS, **(of.fixed or {})}
    also = (*beside, *(OF_PEOPLE if of.totals_of else ()), *{"about"}.intersection(of.fields))
    try:
        return parse_page_request(of.kind, _query(given | always), who, also=also)
    except InvalidRequest as error:
        _say(form, error)
        return parse_page_request(of.kind, _query(always), who)


def _page_found(of: Search, who: Caller, form: BaseForm) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the rows of the page that a form asks for, none if it has faults, and what the templates of lists take."""
    page_request = page_request_of(of, who, form)
    page: Page[Any] = Page([], None)
    totals, waits = None, None
    wanted: dict[str, Any] = {"filters": page_request.filters, "limit": page_request.limit}
    # Of an address the points are not those of its batches.
    has_totals = page_request.start is None and (of.kind != "batches" or page_request.filters.email_key is None)
    by_address = page_request.filters.email_key or page_request.filters.email_part
    is_of_waiting = bool(by_address) and page_request.start is None and page_request.filters.state is None

    def read(connection: Connection) -> tuple[Page[Any], Any, Waiting | None]:
        waits = waiting.find(connection, page_request.filters, at_most=page_request.limit) if is_of_waiting else None
        page = of.page_of(connection, start=page_request.start, **wanted)
        if of.totals_of and has_totals and any(text.strip() for text in request.args.values()):
            return page, of.totals_of(connection, first=page, **wanted), waits
        return page, None, waits

    if not form.errors:
        with nullcontext() if of.kind == "reversals" else searches.turn():  # There are few reversals.
            page, totals, waits = long_read(read)
    cursor = next_cursor(of.kind, page_request, page)
    names = {"form": form, "next_cursor": cursor, "totals": totals, "waiting": waits, "query": request.args}
    return page.rows, names


def _is_address(text: str) -> bool:
    """Tell whether a text is a whole address, which an index finds; anything else is a part of an address."""
    try:
        parse(text)
    except InvalidAddress:
        return False
    return True


def _query(parameters: Mapping[str, str]) -> Query:
    return {name: [text] for name, text in parameters.items()}


def _say(form: BaseForm, error: InvalidRequest) -> None:
    """Show the faults of a query beside the fields of the form; a fault in no field is of the page's address."""
    of_fields = {name: sentences for name, sentences in error.faults.items() if _NAMES.get(name, name) in form}
    for name in {"created_from", "created_to"} & set(of_fields):
        of_fields[name] = [f"{subject(form[name].label.text)} must be a day of the calendar, such as 2026-01-31."]
    for name in {"status", "state", "by", "about"} & set(of_fields):
        of_fields[name] = [f"{subject(form[name].label.text)} must be one of the choices."]
    say_why(form, InvalidRequest(of_fields), _NAMES)
    if len(of_fields) < len(error.faults):
        say_of_form(form, _NOT_KNOWN)


def _file(of: Search) -> Response:
    """Answer with the rows of a list that match what a form asks for, oldest first.

    The parameter `after` has it go on behind a row, the last of a file that broke off.

    Raises:
        InvalidRequest: a filter is wrong.
        NotFound: there is no such row.
    """
    form = of.form({})
    with single_statement() as connection:
        who = calling_member(connection)
    page_request = page_request_of(of, who, form, beside=("after",))
    if form.errors:
        raise InvalidRequest(form.errors)
    faults = FaultsFound()
    after = read_parameter(request.args.to_dict(flat=False), "after", id_of(NOUNS[of.kind]), faults)
    faults.raise_if_any()
    export = begin(of.kind, CSV, page_request.filters, after=after)

    def content() -> Iterator[bytes]:
        if after is None:
            yield files.MARK.encode()
        yield from export.content(searches.turn_of_many)

    return save_as(Response(content(), content_type="text/csv; charset=utf-8"), f"{of.kind}-{g.mode}.csv")


for _name, _search in SEARCHES.items():
    pages.get(f"/{_name}", endpoint=f"list_{_name}")(partial(show_search, _name, _search))
    if _search.kind in KINDS:
        pages.get(f"/{_name}.csv", endpoint=f"{_name}_file")(partial(_file, _search))
