"""The id of a row as an argument of a command."""

from typing import Any

import click

from app.errors import NotFound
from app.settings import INT64_MAX


class RowId(click.ParamType[int]):
    """An integer. One that is too large for any row's id is refused like the id of a missing row."""

    name = "integer"

    def __init__(self, noun: str) -> None:
        self._noun = noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = click.INT.convert(value, param, ctx)
        if abs(number) > INT64_MAX:
            raise NotFound(self._noun, number)
        return number


ORGANIZATION_ID = RowId("organization")
KEY_ID = RowId("key")
