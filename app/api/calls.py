"""A call of the API, declared where its function stands: route, scopes, body, answers, refusals.

The declaration registers the route, checks the key and its scopes, reads the body, and describes the call in
`/openapi.json`, which is made of `CALLS`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial, wraps
from inspect import cleandoc, signature
from typing import Any

from flask import Blueprint, Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app.api import envelope, refusals
from app.api.auth import SCOPES_OF_ENDPOINTS, caller, platform_caller
from app.api.once import answered_before, once, once_in_steps
from app.api.refusals import Refusal
from app.api.requests.body import json_bytes, read_object, refuse_fields
from app.api.requests.query import refuse_parameters
from app.api.requests.send_headers import headers_refused, refuse_headers
from app.errors import InvalidRequest, PointsError
from app.fields.field import Table
from app.noun_fields import says
from app.pages.parameters import PARAMETERS
from app.settings import Settings, settings

View = Callable[..., Response | Mapping[str, Any] | None]
Example = Mapping[str, Any]

blueprint = Blueprint("calls", __name__)


class Additions(BaseModel):
    """The additional data."""

    version: str = says("The version of the interface.", "1.0")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A success of a call.

    Args:
        data, beside: the models of its data and of its additional data. Without `data` it has no envelope.
        schema: the name of the model of the whole; if empty, that of the data and `Answer`.
        examples, examples_beside: by name, what differs in both from the examples that the models make.
        links: by name, the call to make next, and where in the answer its id is.
        content: what it has in place of an envelope.
    """

    about: str
    data: type[BaseModel] | None = None
    beside: type[BaseModel] = Additions
    schema: str = ""
    status: int = 200
    headers: Sequence[str] = ()
    examples: Mapping[str, Example] = field(default_factory=dict)
    examples_beside: Mapping[str, Example] = field(default_factory=dict)
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    content: Mapping[str, Any] | None = None

    @property
    def model(self) -> str:
        """The name of the model of the whole answer; empty without an envelope."""
        return self.schema or ("" if self.data is None else f"{self.data.__name__}Answer")


@dataclass(kw_only=True)
class Call:
    """A call, declared by `@call` at its function.

    The function gets the caller, the ids of the path, and the fields of `body` by name. It returns the data of a
    success, with the status of the first answer, or a whole response. A call outside `/v1/` has no caller, and its
    function is called as it is.

    Args:
        scopes: of a key with scopes the call needs one of them, or none if none is named; of a platform's it needs all.
        about: what callers read, if it is not the docstring of the function.
        name: that of the operation, if it is not the function's.
        query: what the function reads of the query, as `parameters.py` names it; if empty, a query is refused.
        headers: what it reads of the headers.
        read: reads the body, if the table does not; the function gets what it returns as its last argument.
        sent: examples of bodies, by their names.
        first: called with the caller before the body is read.
        refuses: refusals, or errors as they may be raised, beside those of all calls of the kind.
        makes_once: it takes an `Idempotency-Key`, and a repetition gets the answer of the first. After the caller the
            function gets the connection of the transaction in which the answer is kept.
        in_steps: it does so in transactions of its own, and gets no connection.
        checks_itself: the function finds the caller and reads the body itself: it gets only the ids.
    """

    route: str = field(kw_only=False)
    summary: str = field(kw_only=False)
    group: str
    scopes: tuple[str, ...]
    answers: Answer | Sequence[Answer]
    about: str = ""
    name: str = ""
    query: str = ""
    headers: Sequence[str] = ()
    body: Table | None = None
    read: Callable[[dict[str, Any], Settings], object] | None = None
    sent: Mapping[str, Example] = field(default_factory=dict)
    first: Callable[[Any], object] | None = None
    refuses: Iterable[Refusal | PointsError] = ()
    makes_once: bool = False
    in_steps: bool = False
    checks_itself: bool = False

    def __post_init__(self) -> None:
        if self.makes_once:
            self.headers = ("Idempotency-Key", *self.headers)
            self.answers = [replace(each, headers=(*each.headers, "Idempotency-Replayed")) for each in self.successes]
            self.refuses = (*self.refuses, *refusals.MAKING_ONCE)
        self.method, self.path = self.route.split()
        self.has_key = self.path.startswith("/v1/")
        self.is_of_platform = self.path.startswith("/v1/platform/")
        self.ids: Sequence[str] = ()

    def __call__(self, view: View) -> View:
        """Register the route of a function, and keep what describes it."""
        has_caller = self.has_key and not self.checks_itself
        self.name = self.name or re.sub(r"_(\w)", lambda part: part[1].upper(), view.__name__)
        self.about = self.about or cleandoc(view.__doc__ or "")
        places = re.findall(r"{\w+}", self.path)
        before = has_caller + (self.makes_once and not self.in_steps)
        self.ids = list(signature(view).parameters)[before:][: len(places)]
        rule = self.path
        for place, name in zip(places, self.ids, strict=True):
            rule = rule.replace(place, f"<int:{name}>")
        if self.has_key and not self.is_of_platform:
            SCOPES_OF_ENDPOINTS[f"{blueprint.name}.{self.name}"] = self.scopes
        answered: Callable[..., Any] = self._checked(view) if has_caller else view
        blueprint.add_url_rule(rule, self.name, answered, methods=[self.method])
        CALLS.append(self)
        return view

    def _checked(self, view: View) -> Callable[..., Response]:
        """Return the function of a route: it finds the caller, refuses what is not taken, and reads the body."""
        find = partial(platform_caller, *self.scopes) if self.is_of_platform else caller
        first, has_body, has_query, status = self.first, self.body is not None, self.query, self.successes[0].status
        takes_nothing = not has_body and self.method != "GET"
        makes_once, in_steps, refused = self.makes_once, self.in_steps, headers_refused(self.headers)

        @wraps(view)
        def answered(**ids: int) -> Response:
            who = find()
            refuse_headers(refused)
            if not has_query:
                refuse_parameters()
            if first is not None:
                first(who)
            if takes_nothing:
                refuse_fields()
            written = json_bytes() if has_body else b""
            try:
                given, named = self._arguments(ids, written)
            except InvalidRequest:
                if not makes_once or (kept := answered_before(who, written)) is None:
                    raise
                return kept

            def respond(*connection: Connection) -> Response:
                outcome = view(who, *connection, *given, **named)
                if isinstance(outcome, Response):
                    return outcome
                return envelope.nothing() if outcome is None else envelope.success(outcome, status=status)

            if not makes_once:
                return respond()
            making = once_in_steps if in_steps else partial(once, written=written)
            return making(who, (given, named), respond)

        return answered

    def _arguments(self, ids: dict[str, int], written: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the function gets of the path and of the bytes of the body, by place and by name."""
        if (read := self.read) is not None:
            return (*ids.values(), read_object(written, lambda fields: read(fields, settings()))), {}
        if (body := self.body) is not None:
            return (), ids | read_object(written, lambda fields: body.read(fields, settings()))
        return (), ids

    @property
    def successes(self) -> Sequence[Answer]:
        return (self.answers,) if isinstance(self.answers, Answer) else self.answers

    @property
    def refusals(self) -> Sequence[Refusal]:
        """What it refuses: what all calls of its kind do, then what it does itself."""
        usual = list(refusals.OF_ALL)
        if self.has_key:
            usual += (*refusals.WITH_KEY, refusals.OF_PLATFORM if self.is_of_platform else refusals.OF_ORGANIZATION)
        if self.body is not None:
            usual += refusals.WITH_BODY
        elif self.has_key and self.method != "GET":
            usual += refusals.WITHOUT_FIELDS
        elif self.has_key and not self.query:
            usual.append(refusals.NO_QUERY)
        return [*usual, *(each if isinstance(each, Refusal) else refusals.refusal_by(each) for each in self.refuses)]


@cache
def known_names() -> frozenset[str]:
    """Return the names that our own sentences stand under: those of fields, parameters, and what errors are about."""
    tables = [each.body for each in CALLS if each.body is not None]
    parameters = {name for each in CALLS if each.query in PARAMETERS for name in PARAMETERS[each.query]}
    errors = {error.field for error in _all_errors(PointsError)}
    return frozenset({"body", "query", *(name for table in tables for name in table.names), *parameters, *errors})


def _all_errors(base: type[PointsError]) -> Iterator[type[PointsError]]:
    for error in base.__subclasses__():
        yield error
        yield from _all_errors(error)


call = Call
# In the order in which the page of the calls shows those of a group.
CALLS: list[Call] = []
