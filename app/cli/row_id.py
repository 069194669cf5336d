"""The id of a row as an argument of a command."""

from typing import Any

import click

from app.values.row_ids import require_id


class RowId(click.ParamType[int]):
    """An integer. One that is too large for any row's id is refused like the id of a missing row."""

    name = "integer"

    def __init__(self, noun: str) -> None:
        self._noun = noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = click.INT.convert(value, param, ctx)
        require_id(self._noun, number)
        return number


ORGANIZATION_ID = RowId("organization")
KEY_ID = RowId("key")
