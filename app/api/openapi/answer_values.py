"""What the models of answers are made of: fields with a description and an example, ids, points, times.

The models are beside, in a file for each noun. They only describe: `app/api/answers/` renders the answers, ten times as
fast as models would. A model's docstring is for callers: it becomes the description of a schema.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema

from app.errors import OrganizationDisabled, OrganizationSuspended


def says(description: str, *example: Any, **more: Any) -> Any:
    """Return a field with its description and its example. A field that is a model needs no example."""
    return Field(description=description, examples=list(example) or None, **more)


def says_one_of(words: Sequence[str], description: str, *example: Any) -> Any:
    """Return a field that is one of these words. It is described as any text: a client must not fail at a new word."""
    known = f"{description} Known: {', '.join(f'`{word}`' for word in words)}; others may come."
    return says(known, *example, json_schema_extra={"x-extensible-enum": list(words)})


Id = Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})]
Points = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"
Time = Annotated[str, Field(pattern=_TIME, json_schema_extra={"format": "date-time"})]

# Always null. Described as an object or null, because some client generators know no type that is only null.
Null = Annotated[None, WithJsonSchema({"type": ["object", "null"]})]

Cursor = Annotated[str | None, says("The `cursor` of the next page; null at the end of the list.", None)]

# The codes of an organization that may not issue.
MAY_NOT_ISSUE = (OrganizationDisabled.code, OrganizationSuspended.code)


class User(BaseModel):
    """An account."""

    id: Id = says("The id of the account.", 7)
    first_name: str = says("The given name.", "Ada")
    last_name: str = says("The family name.", "Lovelace")


class Additions(BaseModel):
    """The additional data."""

    version: str = says("The version of the interface.", "1.0")
