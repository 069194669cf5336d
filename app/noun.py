"""A noun, said once: a row class whose fields say all that is said of them anywhere (decision 32).

A field is `Annotated` with what callers read, by pydantic's `Field` (`says`), and with what is ours, by `Shown`. From
the class are made, once and at import: the columns of its statements, its payload, its schema, the bodies that make and
change it. An action is a function with a docstring. What is special stays a function of the noun's module.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from inspect import cleandoc
from types import NoneType
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import orjson
from pydantic import BaseModel, Field, WithJsonSchema, create_model
from pydantic.fields import FieldInfo
from sqlalchemy import Connection, text

from app.errors import PointsError
from app.fields.field import Changes, Table
from app.fields.field import Field as Written
from app.postgres.database import row_with_id
from app.scope import Scope
from app.settings import INT64_MAX
from app.values.timestamps import timestamp

NounRow = TypeVar("NounRow", bound=tuple[Any, ...])
Rule = TypeVar("Rule", bound=Callable[..., Any])

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
    """Return the model of a page of a list, newest first; `rows` is what callers read of them, if not the plural."""
    rows = rows or plural
    fields: dict[str, Any] = {
        plural: (list[model], says(f"The {rows} of this page.")),  # type: ignore[valid-type]
        "next_cursor": (Cursor, ...),
    }
    return create_model(f"{called.capitalize()}List", __doc__=f"A page of {rows}, newest first.", **fields)


def example(model: type[BaseModel], **changes: Any) -> dict[str, Any]:
    """Return an example of a model: each field has its own example, unless `changes` has another."""
    own = {name: field.examples or [_part(field.annotation)] for name, field in model.model_fields.items()}
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


class SQL(str):
    """An expression of SQL in place of a value."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """Something that can be done with one of a noun's rows while it is locked.

    `done` is what the log of actions and the console say then. `refuses` are the errors that the rule may raise, as
    they are then.
    """

    rule: Callable[..., Any]
    summary: str
    about: str
    done: str
    answers: str
    refuses: Sequence[PointsError]
    body: Table | None


@dataclass(frozen=True, slots=True)
class _Said:
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
        return (Time | None if self._may_be_null else Time), self.field

    @property
    def _is_moment(self) -> bool:
        return datetime in (self.kind, *get_args(self.kind))

    @property
    def _may_be_null(self) -> bool:
        return NoneType in get_args(self.kind)


class Noun(Generic[NounRow]):
    """All that is made of a row class; its docstring describes it to callers.

    Args:
        called, plural: in paths, sentences and answers; `plural` names the table too, unless `table` does.
        computed: the columns that are not the table's, as SQL of the prefix of those that are. A field with a default
            is no column: who reads the row adds it.
        schema, about: the name and the description of its schema, if they are not the row's.
        without: what callers do not see of it.
        about_new, about_changed: the bodies that make and change a row.
        parts: the objects within an answer, as `event` of `event.id`.

    `payload` makes JSON of a row, `document` the same with moments and sums as Python has them; `model` describes both.
    """

    def __init__(
        self,
        row: type[NounRow],
        called: str,
        plural: str,
        *,
        table: str = "",
        computed: Mapping[str, Callable[[str], str]] | None = None,
        schema: str = "",
        about: str = "",
        without: Sequence[str] = (),
        about_new: str = "",
        about_changed: str = "",
        parts: Mapping[str, Part] | None = None,
    ) -> None:
        self.row, self.called, self.plural, self.table = row, called, plural, table or plural
        fields, parts = [said for said in _fields_of(row) if said.attribute not in without], parts or {}
        read = [name for name in row._fields if name not in row._field_defaults]  # type: ignore[attr-defined]
        self.width = len(read)
        self._computed = computed or {}
        self.of_table = [name for name in read if name not in self._computed]
        self._read = read
        self.columns = self.columns_as("")
        of_scope = f"SELECT {self.columns} FROM {self.table} WHERE {_SCOPE}"
        self._get, self._all = text(f"{of_scope} AND id = :id"), text(f"{of_scope} ORDER BY id")
        self._lock = text(f"{self._get} FOR NO KEY UPDATE")
        self.payload: Callable[[NounRow], dict[str, Any]] = _compiled(fields, parts, is_json=True)
        self.document: Callable[[NounRow], dict[str, Any]] = _compiled(fields, parts, is_json=False)
        self.model = _model(schema or row.__name__, about or row.__doc__, fields, parts)
        written = [(said.note.written, said.note.null) for said in fields]
        self.new = Table(f"New{row.__name__}", about_new, *(field for field, _ in written if field is not None))
        null = {field.name: meaning for field, meaning in written if field is not None and meaning}
        self.changed = Changes(f"Changed{row.__name__}", about_changed, self.new, null)
        self.actions: dict[str, Action] = {}

    def columns_as(self, prefix: str) -> str:
        """Return the columns of a row, in the order of its fields, of a table or source with this prefix (`b.`)."""
        computed = {name: f"{of(prefix)} AS {name}" for name, of in self._computed.items()}
        return ", ".join(computed.get(name, f"{prefix}{name}") for name in self._read)

    def page(self, rows: str = "") -> type[BaseModel]:
        """Return the model of a page, as `page_of` does."""
        return page_of(self.model, self.called, self.plural, rows)

    # Statements.

    def get(self, connection: Connection, row_id: int, scope: Scope, *, lock: bool = False) -> NounRow:
        """Return a row of the organization and mode; with `lock`, locked until the transaction ends.

        Raises:
            NotFound: there is none.
        """
        parameters = {"id": row_id, **scope._asdict()}
        return self.row(*row_with_id(connection, self._lock if lock else self._get, parameters, self.called))

    def all(self, connection: Connection, scope: Scope) -> list[NounRow]:
        """Return all rows of an organization and mode, oldest first."""
        return [self.row(*row) for row in connection.execute(self._all, scope._asdict())]

    def count(self, connection: Connection, scope: Scope) -> int:
        """Return how many rows an organization has in a mode."""
        statement = text(f"SELECT count(*) FROM {self.table} WHERE {_SCOPE}")
        return int(connection.execute(statement, scope._asdict()).scalar_one())

    def add(self, connection: Connection, scope: Scope, **values: Any) -> NounRow:
        """Insert a row; a value that is `SQL` is an expression, which may name the scope's parameters."""
        given = scope._asdict() | values
        held = ", ".join(_value(*each) for each in given.items())
        statement = f"INSERT INTO {self.table} ({', '.join(given)}) VALUES ({held}) RETURNING {self.columns}"
        return self._written(connection, statement, given)

    def set(self, connection: Connection, row: NounRow, **values: Any) -> NounRow:
        """Set columns of a row, and return it as it is now."""
        held = ", ".join(f"{name} = {_value(name, value)}" for name, value in values.items())
        statement = f"UPDATE {self.table} SET {held} WHERE id = :id RETURNING {self.columns}"
        return self._written(connection, statement, {"id": row.id, **values})  # type: ignore[attr-defined]

    def delete(self, connection: Connection, row: NounRow) -> None:
        """Delete a row, with what belongs to it."""
        connection.execute(text(f"DELETE FROM {self.table} WHERE id = :id"), {"id": row.id})  # type: ignore[attr-defined]

    def _written(self, connection: Connection, statement: str, values: Mapping[str, Any]) -> NounRow:
        bound = {name: value for name, value in values.items() if not isinstance(value, SQL)}
        return self.row(*connection.execute(text(statement), bound).one())

    def action(
        self,
        summary: str,
        *,
        done: str,
        answers: str = "",
        refuses: Sequence[PointsError] = (),
        body: Table | None = None,
    ) -> Callable[[Rule], Rule]:
        """Make a rule an action: a call of the API, a button of the console, a line in the log of actions.

        The rule takes a connection, a row that is locked, and what `body` holds; it returns the row, and a secret if
        there is one to show. Its docstring is what callers read. `answers` describes the answer.
        """

        def keep(rule: Rule) -> Rule:
            name = rule.__name__
            self.actions[name] = Action(
                rule=rule,
                summary=summary,
                about=" ".join(cleandoc(rule.__doc__ or "").split("\n")),
                done=done,
                answers=answers or f"The {self.called}.",
                refuses=refuses,
                body=body,
            )
            return rule

        return keep


_SCOPE = "organization_id = :organization_id AND sandbox = :sandbox"


def _value(name: str, value: Any) -> str:
    return value if isinstance(value, SQL) else f":{name}"


def _fields_of(row: type[Any]) -> list[_Said]:
    """Return the fields of which something is said, in the order in which callers see them."""
    hints = get_type_hints(row, include_extras=True)
    properties = {name: part.fget for name, part in vars(row).items() if isinstance(part, property)}
    hints |= {name: get_type_hints(getter, include_extras=True)["return"] for name, getter in properties.items()}
    fields = [said for said in itertools.starmap(_said, hints.items()) if said is not None]
    for said in [said for said in fields if said.note.before]:
        fields.remove(said)
        fields.insert([other.attribute for other in fields].index(said.note.before), said)
    return fields


def _said(name: str, hint: Any) -> _Said | None:
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
    return _Said(name, Annotated[(kind, *of_kind)] if of_kind else kind, described, ours)


def _model(schema: str, about: str | None, fields: Sequence[_Said], parts: Mapping[str, Part]) -> type[BaseModel]:
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


def _compiled(fields: Sequence[_Said], parts: Mapping[str, Part], *, is_json: bool) -> Callable[[Any], dict[str, Any]]:
    """Return the function that makes a payload, compiled from its source: as fast as a function written by hand."""
    tree: dict[str, str | dict[str, str]] = {}
    for said in fields:
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

    names: dict[str, Any] = {"timestamp": timestamp, "exact_sum": exact_sum}
    exec(f"def payload(row): return {source(tree)}", names)  # noqa: S102  # nosec B102  # Our own words.
    payload: Callable[[Any], dict[str, Any]] = names["payload"]
    return payload
