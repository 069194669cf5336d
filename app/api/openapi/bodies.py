"""The schemas of the bodies of requests, made from the tables of fields by which they are read."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from app.api.views import CALLS
from app.batches import fields as of_send
from app.fields.field import Field, Schema, Table, reference_to
from app.fields.kinds import RECIPIENT
from app.reversals import request as of_reverse
from app.settings import Settings

# A form of a body that has just one of several fields: this field, and rows that differ from the table's.
_Form = tuple[str, Field[Any], *tuple[Field[Any], ...]]
_TO_MANY = "Points for a list of recipients"
_TO_ONE = "Points for one recipient"
_TO_EACH = "Points for recipients that each have their own amount, label or reference"
_FORMS: dict[Table, dict[str, _Form]] = {
    of_send.VERIFY: {
        "IssueToMany": (f"{_TO_MANY}.", of_send.RECIPIENTS),
        "IssueToOne": (f"{_TO_ONE}.", of_send.RECIPIENT),
        "IssueToEach": (f"{_TO_EACH}.", of_send.ITEMS, of_send.DEFAULT_AMOUNT),
    },
    of_send.SEND: {
        "SendToMany": (f"{_TO_MANY}, at once or later.", of_send.RECIPIENTS),
        "SendToOne": (f"{_TO_ONE}, at once or later.", of_send.RECIPIENT),
        "SendToEach": (f"{_TO_EACH}, at once or later.", of_send.ITEMS, of_send.DEFAULT_AMOUNT),
    },
    of_reverse.REVERSE: {
        "ReverseBatch": ("Take back a whole batch.", of_reverse.BATCH),
        "ReverseTransactions": ("Take back some transactions.", of_reverse.TRANSACTIONS),
    },
}
# The values that count as missing: null, and in some fields an empty one. Generators cannot name null alone, so it
# stands beside an array that cannot be.
_EMPTY: Schema = {"type": ["string", "array", "null"], "maxLength": 0, "maxItems": 0, "items": {}}
_NULL: Schema = {"type": ["array", "null"], "minItems": 1, "maxItems": 0, "items": {}}


def schemas(limits: Settings) -> dict[str, Schema]:
    """Return the schemas by their names, with the limits of these settings."""
    bodies = (call.body for call in CALLS if call.body is not None)
    tables = (of_send.ITEM, of_send.TOTALS, of_reverse.EXPECTED, *bodies)
    named = {"Recipient": RECIPIENT} | {table.schema_name: table.schema(limits) for table in tables}
    for table, forms in _FORMS.items():
        named[table.schema_name] = {"description": table.about, "oneOf": list(map(reference_to, forms))}
        choices = [one for _, one, *_ in forms.values()]
        named |= {name: _schema(table, name, form, choices, limits) for name, form in forms.items()}
    return named


def _schema(table: Table, name: str, form: _Form, choices: Collection[Field[Any]], limits: Settings) -> Schema:
    """Return the schema of a form, in which the other fields to choose from are missing."""
    about, one, *changed = form
    rows = {row.name: row for row in table.rows if row is one or row not in choices}
    rows |= {row.name: row for row in (replace(one, is_required=True), *changed)}
    schema = Table(name, about, *rows.values()).schema(limits)
    beside = {"description": f"Not beside `{one.name}`."}
    schema["properties"] |= {
        choice.name: (_EMPTY if choice.empty_is_missing else _NULL) | beside for choice in choices if choice is not one
    }
    return schema
