"""Answers of the service: the envelope, the error for each refusal, JSON as dataclasses; or of another server."""

import dataclasses
import json
import types
import typing
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, partial
from typing import Any, TypeVar, cast

import httpx

from points_client.errors import (
    Conflict,
    Gone,
    Invalid,
    NotAllowed,
    NotAuthorized,
    NotFound,
    PointsError,
    RateLimited,
)

T = TypeVar("T")
_Convert = Callable[[list[Any]], list[Any]]  # Of a field, in many documents.
_CLASS_OF: Mapping[int, type[PointsError]] = {
    **dict.fromkeys((400, 405, 413, 415, 422), Invalid),
    401: NotAuthorized,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: RateLimited,
}


class CutShort(Exception):
    """An answer broke off: it has the status of a success, and JSON without an end."""


class Unlike(Exception):
    """An answer is not what was asked for; the text completes “The answer is not to this call: …”."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A success: the status, `data` and `additional_data` of the envelope.

    `replayed`: an earlier call has done this already. False if an earlier try of this call may have done it.
    `request_id`: its `X-Request-Id`.
    """

    status: int
    data: Mapping[str, Any]
    additional: Mapping[str, Any]
    replayed: bool = False
    request_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An answer that is no success. `is_ours`: it is in the envelope, so the service itself has given it."""

    response: httpx.Response
    errors: Mapping[str, Sequence[str]]
    additional: Mapping[str, Any]
    is_ours: bool

    @property
    def fields(self) -> dict[str, Any]:
        """What the error of this answer carries."""
        code = self.additional.get("code")
        return {
            "status": self.response.status_code,
            "errors": self.errors,
            "code": code if isinstance(code, str) else None,
            "additional": self.additional,
            "request_id": self.response.headers.get("X-Request-Id"),
            "location": self.response.headers.get("Location") if self.response.has_redirect_location else None,
        }

    @property
    def kind(self) -> type[PointsError]:
        return _CLASS_OF.get(self.response.status_code, PointsError) if self.is_ours else PointsError

    @property
    def sentence(self) -> str:
        status = self.response.status_code
        if self.is_ours:
            return f"{status}: " + " ".join(f"{field}: {' '.join(found)}" for field, found in self.errors.items())
        url = self.response.request.url.copy_with(query=None)
        if self.response.has_redirect_location:
            return f"{url} answers {status} and points to {self.response.headers['Location']}."
        return f"{url} answers {status}, but not as a Points Issuing Service does. Is the URL right?"


def envelope_of(response: httpx.Response) -> Answer | Refusal:
    """Return what an answer says.

    Raises:
        CutShort: it broke off.
        RecursionError: its JSON is nested without end.
    """
    request_id = response.headers.get("X-Request-Id")
    if response.status_code == 204:
        return Answer(status=204, data={}, additional={}, request_id=request_id)
    foreign = Refusal(response=response, errors={}, additional={}, is_ours=False)
    try:
        document = json.loads(response.content)
    except ValueError:
        if response.is_success and response.headers.get("Content-Type", "").startswith("application/json"):
            raise CutShort from None
        return foreign
    if not isinstance(document, dict):
        return foreign
    data: Any = document.get("data")
    errors: Any = document.get("errors")
    additional = document.get("additional_data")
    additional = additional if isinstance(additional, dict) else {}
    if response.is_success:
        answer = Answer(status=response.status_code, data=data, additional=additional, request_id=request_id)
        return answer if document.get("success") is True and isinstance(data, dict) else foreign
    if not _are_errors(errors):
        return foreign
    return Refusal(response=response, errors=errors, additional=additional, is_ours=True)


def _are_errors(errors: object) -> bool:
    """Tell whether these are field names with sentences, as only the service writes them."""
    return (
        isinstance(errors, dict)
        and bool(errors)
        and all(isinstance(found, list) and all(isinstance(one, str) for one in found) for found in errors.values())
    )


def read(kind: type[T], document: Mapping[str, Any]) -> T:
    """Make a dataclass from a JSON object; a field with a default may be missing, and others are ignored.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the JSON does not fit the dataclass.
    """
    [found] = _read_all(kind, [document])
    return cast(T, found)


def _read_all(kind: Any, documents: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Read documents of one kind, field by field: a send has thousands of transactions."""
    made = [kind.__new__(kind) for _ in documents]
    for name, default, convert, put in _fields(kind):
        values = [document[name] for document in documents if name in document]
        if len(values) == len(documents):
            values = convert(values)
        elif default is dataclasses.MISSING:
            raise KeyError(name)
        elif values:  # Only some have it.
            return [read(kind, document) for document in documents]
        else:
            values = [default] * len(documents)
        deque(map(put, made, values), maxlen=0)
    return made


@cache
def _fields(kind: Any) -> list[tuple[str, Any, _Convert, Callable[[Any, Any], None]]]:
    """Return each field's name in JSON, its default, how it is read, and what puts it into its slot.

    Python keeps some words for itself, such as `from`: a field of this name is `from_`.
    """
    hints = typing.get_type_hints(kind)
    return [
        # `__init__` of a frozen dataclass takes twice as long as all the rest.
        (field.name.rstrip("_"), field.default, _converter(hints[field.name]), getattr(kind, field.name).__set__)
        for field in dataclasses.fields(kind)
    ]


def _converter(hint: Any) -> _Convert:
    """Return the function that turns values of JSON into values of this type, and takes no others."""
    if isinstance(hint, types.UnionType):  # `X | None`.
        [inner] = [_converter(one) for one in typing.get_args(hint) if one is not type(None)]
        return partial(_or_none, inner)
    if hint in (date, datetime):
        return partial(_parsed, hint.fromisoformat)
    if dataclasses.is_dataclass(hint):
        return partial(_read_all, hint)
    origin = typing.get_origin(hint)
    if origin is tuple:
        each = _converter(typing.get_args(hint)[0])
        return lambda values: [tuple(each(value)) for value in _of((list, tuple), values)]
    return partial(_of, dict if origin is Mapping else hint)


def _or_none(convert: _Convert, values: list[Any]) -> list[Any]:
    found = iter(convert([value for value in values if value is not None]))
    return [None if value is None else next(found) for value in values]


def _parsed(parse: Callable[[str], Any], texts: list[str]) -> list[Any]:
    moments = {text: parse(text) for text in set(texts)}  # All transactions of a batch have one.
    return [moments[text] for text in texts]


def _of(kind: Any, values: list[Any]) -> list[Any]:
    for found in set(map(type, values)):
        if not issubclass(found, kind) or (found is bool and kind is int):
            raise TypeError(f"It is {found.__name__}, and not {kind}.")
    return values
