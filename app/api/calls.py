"""A call of the API, declared where its function stands: route, scopes, body, answer, refusals.

The declaration registers the route, checks the key and its scopes, reads the body, and describes the call in
`/openapi.json`. `Call.block` is what the description is made of.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import cleandoc
from typing import Any

from flask import Blueprint, Response
from pydantic import BaseModel

from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.body import read_json, refuse_fields
from app.api.requests.query import refuse_parameters
from app.api.scopes import SCOPES_OF_CALLS
from app.errors import PointsError
from app.fields.field import Table

View = Callable[..., Response | Mapping[str, Any] | None]

blueprint = Blueprint("calls", __name__)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The success of a call.

    `examples` are, by name, what differs from the example that the model of its data makes. A 204 has no data.
    """

    about: str
    data: type[BaseModel] | None = None
    status: int = 200
    headers: Sequence[str] = ()
    examples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The name of the model of the whole answer."""
        return "" if self.data is None else f"{self.data.__name__}Answer"

    @property
    def block(self) -> dict[str, Any]:
        if self.data is None:
            return {"about": self.about}
        headers = {"headers": list(self.headers)} if self.headers else {}
        return {"about": self.about, "model": self.model, "examples": list(self.examples), **headers}


@dataclass(frozen=True, kw_only=True)
class Call:
    """A declared call."""

    route: str
    group: str
    name: str
    summary: str
    about: str
    answer: Answer
    body: Table | None
    sent: Mapping[str, Any]
    takes: Sequence[str]
    refuses: Sequence[PointsError | str]
    has_query: bool

    @property
    def block(self) -> dict[str, Any]:
        """The call as the description reads it."""
        block: dict[str, Any] = {"route": self.route, "summary": self.summary, "about": self.about}
        if self.takes:
            block["takes"] = list(self.takes)
        if self.body is not None:
            block["body"] = {"model": self.body.schema_name, "examples": list(self.sent)}
        return block | {str(self.answer.status): self.answer.block, "refuses": self._refusals()}

    def _refusals(self) -> list[PointsError | str]:
        """What this call refuses beside what all calls of its kind do."""
        of_query = [] if self.has_query or self.body is not None else ["NoQuery"]
        if self.route.split()[0] in ("POST", "DELETE") and self.body is None:
            of_query = [*("TooLarge", "WrongType", "TooSlow"), "NoFields"]
        return [*of_query, *self.refuses]


CALLS: list[Call] = []


def call(
    route: str,
    summary: str,
    *,
    group: str,
    scopes: tuple[str, ...],
    answer: Answer,
    about: str = "",
    name: str = "",
    takes: Sequence[str] = (),
    body: Table | None = None,
    sent: Mapping[str, Any] | None = None,
    first: Callable[[], None] | None = None,
    refuses: Sequence[PointsError | str] = (),
    has_query: bool = False,
) -> Callable[[View], View]:
    """Declare a call of organizations. Its function gets the caller, the ids of the path, and what `body` holds.

    It returns the data of a success, or a whole response. Its docstring is what callers read, unless `about` is; its
    name is that of the operation, unless `name` is.

    Args:
        takes: parameters of the description.
        sent: examples of bodies, by their names.
        first: called before the body is read.
        refuses: errors as they may be raised, or names of `refusals.toml`.
        has_query: the function reads the query itself; otherwise a query is refused.
    """
    method, path = route.split()

    def declare(view: View) -> View:
        @wraps(view)
        def answered(**ids: int) -> Response:
            who = caller()
            if not has_query:
                refuse_parameters()
            if first is not None:
                first()
            values: Mapping[str, Any] = {}
            if body is not None:
                values = read_json(body.read)
            elif method != "GET":
                refuse_fields()
            outcome = view(who, *ids.values(), **values)
            if isinstance(outcome, Response):
                return outcome
            return envelope.nothing() if outcome is None else envelope.success(outcome, status=answer.status)

        operation = name or re.sub(r"_(\w)", lambda found: found[1].upper(), view.__name__)
        declared = Call(
            route=route,
            group=group,
            name=operation,
            summary=summary,
            about=about or " ".join(cleandoc(view.__doc__ or "").split("\n")),
            answer=answer,
            body=body,
            sent=sent or {},
            takes=takes,
            refuses=refuses,
            has_query=has_query,
        )
        CALLS.append(declared)
        SCOPES_OF_CALLS[re.sub(r"{\w+}", "{id}", route)] = scopes
        blueprint.add_url_rule(re.sub(r"{(\w+)}", r"<int:\1>", path), operation, answered, methods=[method])
        return view

    return declare
