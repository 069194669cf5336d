"""What the fields of a noun say: their types, their words for callers, and what is made of them (decision 32).

A field is `Annotated` with what callers read, by pydantic's `Field` (`says`), and with what is ours, by `Shown`.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import orjson
from pydantic import BaseModel, Field, WithJsonSchema, create_model
from pydantic.fields import FieldInfo

from app.fields.field import Field as Written
from app.settings import INT64_MAX
from app.values.timestamps import timestamp

Id = Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})]
Points = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"
Time = Annotated[str, Field(pattern=_TIME, json_schema_extra={"format": "date-time"})]

# Always null. Described as an object or null, because some client generators know no type that is only null.
Null = Annotated[None, WithJsonSchema({"type": ["object", "null"]})]


def says(description: str, *example: Any, **more: Any) -> Any:
    """Return a field with its description and its example. A field that is a model needs no example."""
    return Field(description=description, examples=list(example) or None, **more)


def says_one_of(words: Sequence[str], description: str, *example: Any) -> Any:
    """Return a field that is one of these words. It is described as any text: a client must not fail at a new word."""
    known = f"{description} Known: {', '.join(f'`{word}`' for word in words)}; others may come."
    return says(known, *example, json_schema_extra={"x-extensible-enum": list(words)})


Cursor = Annotated[str | None, says("The `cursor` of the next page; null at the end of the list.", None)]


def exact_sum(points: int) -> int | orjson.Fragment:
    """Return a sum over many organizations or days as JSON has it: it may have more than 64 bits."""
    return points if abs(points) <= INT64_MAX else orjson.Fragment(str(points))


def page_of(model: type[BaseModel], called: str, plural: str, rows: str = "") -> type[BaseModel]:
    """Return the model of a page of a list; `rows` is what callers read of them, if not the plural."""
    rows = rows or plural
    fields: dict[str, Any] = {
        plural: (list[model], says(f"The {rows} of this page.")),  # type: ignore[valid-type]
        "next_cursor": (Cursor, ...),
    }
    return create_model(f"{called.capitalize()}List", __doc__=f"A page of {rows}.", **fields)


def example(model: type[BaseModel], **changes: Any) -> dict[str, Any]:
    """Return an example of a model: each field that is always there has its own, unless `changes` has another."""
    shown = {name: field for name, field in model.model_fields.items() if field.default_factory is None}
    own = {name: field.examples or [_part(field.annotation)] for name, field in shown.items()}
    assert changes.keys() <= own.keys()
    return {name: changes[name] if name in changes else examples[0] for name, examples in own.items()}


def _part(annotation: Any) -> Any:
    """Return an example of a field that is a model, a model or null, or a list of models."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return example(annotation)
    inner = _part(get_args(annotation)[0])
    return [inner] if get_origin(annotation) is list else inner


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What pydantic has no word for.

    Args:
        name: for callers, if it is not the attribute's: `old_secret_until`, or `event.id` within an object.
        before: the attribute that it stands before: of a property, or of a field that has a default.
        described: the type that callers see, if it is not the attribute's.
        written: how a body sets the field.
        null: what null means in a body that changes it; if empty, the field cannot be null.
        is_sum: it may have more than 64 bits.
    """

    name: str = ""
    before: str = ""
    described: Any = None
    written: Written[Any] | None = None
    null: str = ""
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """An object within an answer, whose fields are named `part.field`.

    Args:
        schema, about: the name and the description of its own schema.
        says: what is said of the field; if empty, the same.
        null_without: the attribute that is None if the object is null; if empty, it is never null. The types of its
            attributes are those within the object.
    """

    schema: str
    about: str
    says: str = ""
    null_without: str = ""


@dataclass(frozen=True, slots=True)
class NounField:
    """A field as its class declares it."""

    attribute: str
    kind: Any
    field: FieldInfo
    note: Shown

    @property
    def name(self) -> str:
        return self.note.name or self.attribute

    def value(self, *, is_json: bool) -> str:
        """The expression of its value, given `row`: as JSON has it, or with moments and sums as Python has them."""
        value = f"row.{self.attribute}"
        if is_json and self.note.is_sum:
            return f"exact_sum({value})"
        if not is_json or not self._is_moment:
            return value
        return f"None if {value} is None else timestamp({value})" if self._may_be_null else f"timestamp({value})"

    @property
    def described(self) -> tuple[Any, FieldInfo]:
        """Its type and its description, as pydantic takes them."""
        if not self._is_moment:
            return self.note.described or self.kind, self.field
        return (Time | None if self._may_be_null and not self.may_be_absent else Time), self.field

    @property
    def may_be_absent(self) -> bool:
        """It is left out where it is None: its description has a factory of a default."""
        return self.field.default_factory is not None

    @property
    def _is_moment(self) -> bool:
        return datetime in (self.kind, *get_args(self.kind))

    @property
    def _may_be_null(self) -> bool:
        return NoneType in get_args(self.kind)


def fields_of(row: type[Any]) -> list[NounField]:
    """Return the fields of which something is said, in the order in which callers see them."""
    hints = get_type_hints(row, include_extras=True)
    properties = {name: part.fget for name, part in vars(row).items() if isinstance(part, property)}
    hints |= {name: get_type_hints(getter, include_extras=True)["return"] for name, getter in properties.items()}
    fields = [said for said in itertools.starmap(_noted, hints.items()) if said is not None]
    for said in [said for said in fields if said.note.before]:
        fields.remove(said)
        fields.insert([other.attribute for other in fields].index(said.note.before), said)
    return fields


def _noted(name: str, hint: Any) -> NounField | None:
    """Return a field; None if nothing is said of it: callers do not see it."""
    if get_origin(hint) is not Annotated:
        return None
    kind, *notes = get_args(hint)
    ours = next((note for note in notes if isinstance(note, Shown)), Shown())
    own = [note for note in notes if not isinstance(note, Shown)]
    described = next((note for note in own if isinstance(note, FieldInfo) and note.description), None)
    if described is None:
        return None
    of_kind = tuple(note for note in own if note is not described)  # As `Id`: how large it may be.
    return NounField(name, Annotated[(kind, *of_kind)] if of_kind else kind, described, ours)


def model_of(schema: str, about: str | None, fields: Sequence[NounField], parts: Mapping[str, Part]) -> type[BaseModel]:
    """Return the model that describes a payload."""
    own: dict[str, Any] = {}
    within: dict[str, dict[str, Any]] = {}
    for said in fields:
        part, dot, name = said.name.partition(".")
        if dot:
            own.setdefault(part, None)  # Its place among the others.
            within.setdefault(part, {})[name] = said.described
        else:
            own[part] = said.described
    for name, inner in within.items():
        whole = parts[name]
        model = create_model(whole.schema, __doc__=whole.about, **inner)
        own[name] = (model | None if whole.null_without else model, says(whole.says or whole.about))
    return create_model(schema, __doc__=about, **own)


def payload_of(
    fields: Sequence[NounField], parts: Mapping[str, Part], *, is_json: bool
) -> Callable[[Any], dict[str, Any]]:
    """Return the function that makes a payload, compiled from its source: as fast as a function written by hand."""
    tree: dict[str, str | dict[str, str]] = {}
    for said in fields:
        if said.may_be_absent:
            continue
        part, dot, name = said.name.partition(".")
        node: dict[str, Any] = tree.setdefault(part, {}) if dot else tree  # type: ignore[assignment]
        node[name if dot else part] = said.value(is_json=is_json)

    def source(node: Mapping[str, str | dict[str, str]]) -> str:
        return f"{{{', '.join(f'{name!r}: {of_field(name, value)}' for name, value in node.items())}}}"

    def of_field(name: str, value: str | dict[str, str]) -> str:
        if isinstance(value, str):
            return value
        without = parts[name].null_without
        return f"None if row.{without} is None else {source(value)}" if without else source(value)

    rare = "".join(
        f" | ({{}} if row.{said.attribute} is None else {{{said.name!r}: {said.value(is_json=is_json)}}})"
        for said in fields
        if said.may_be_absent
    )
    names: dict[str, Any] = {"timestamp": timestamp, "exact_sum": exact_sum}
    exec(f"def payload(row): return {source(tree)}{rare}", names)  # noqa: S102  # nosec B102  # Our own words.
    payload: Callable[[Any], dict[str, Any]] = names["payload"]
    return payload
