"""A noun, said once: a row class whose fields say all that is said of them anywhere (decision 32).

What a field says is in `app.noun_fields`. From the class are made, once and at import: the columns of its statements,
its payload, its schema, the bodies that make and change it. An action is a function with a docstring. What is special
stays a function of the noun's module.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy import Connection, text

from app.errors import PointsError
from app.fields.field import Changes, Table
from app.noun_fields import Part, fields_of, model_of, page_of, payload_of
from app.postgres.database import row_with_id
from app.scope import Scope

NounRow = TypeVar("NounRow", bound=tuple[Any, ...])
Rule = TypeVar("Rule", bound=Callable[..., Any])


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
        fields, parts = [said for said in fields_of(row) if said.attribute not in without], parts or {}
        read = [name for name in row._fields if name not in row._field_defaults]  # type: ignore[attr-defined]
        self.width = len(read)
        self._computed = computed or {}
        self.of_table = [name for name in read if name not in self._computed]
        self._read = read
        self.columns = self.columns_as("")
        of_scope = f"SELECT {self.columns} FROM {self.table} WHERE {_SCOPE}"
        self._get, self._all = text(f"{of_scope} AND id = :id"), text(f"{of_scope} ORDER BY id")
        self._lock = text(f"{self._get} FOR NO KEY UPDATE")
        self.payload: Callable[[NounRow], dict[str, Any]] = payload_of(fields, parts, is_json=True)
        self.document: Callable[[NounRow], dict[str, Any]] = payload_of(fields, parts, is_json=False)
        self.model = model_of(schema or row.__name__, about or row.__doc__, fields, parts)
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
