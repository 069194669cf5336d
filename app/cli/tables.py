"""Tables on a terminal of any width, and without one; and a progress bar."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from app.cli.answer import Columns
from app.values.numbers import moment, points

# A name may hold control characters, which would act on the terminal or break the table.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

# A pipe has no width, and a program that reads it must get each row on a single line.
_WIDTH_OF_A_PIPE = 1_000


def console(*, stderr: bool = False) -> Console:
    """Make a console for standard output or error: coloured only on a terminal, and not with NO_COLOR."""
    terminal = Console(stderr=stderr, highlight=False)
    return terminal if terminal.is_terminal else Console(stderr=stderr, highlight=False, width=_WIDTH_OF_A_PIPE)


def print_table(rows: Sequence[Mapping[str, Any]], columns: Columns) -> None:
    """Print a table; if it is too wide for the terminal, a block of lines for each row."""
    out = console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, source in columns.items():
        numbers = bool(rows) and all(_is_number(_value(row, source)) for row in rows)
        table.add_column(heading, justify="right" if numbers else "left", no_wrap=True)
    cells = [[_cell(_value(row, source), is_id=_is_id(source)) for source in columns.values()] for row in rows]
    for row in cells:
        table.add_row(*map(Text, row))
    if out.measure(table, options=out.options.update_width(_WIDTH_OF_A_PIPE)).maximum <= out.width:
        out.print(table)
        return
    for place, row in enumerate(cells):
        if place:
            out.print()
        print_pairs(out, dict(zip(columns, row, strict=True)))


def print_pairs(out: Console, pairs: Mapping[str, str | None]) -> None:
    """Print a line for each name with its value; a None is left out, a long value wrapped."""
    texts = {name: Text(_printable(value)) for name, value in pairs.items() if value is not None}
    indent = max(map(len, texts), default=0) + 2
    for name, value in texts.items():
        lines = value.wrap(out, max(out.width - indent, 1), overflow="fold")
        for place, line in enumerate(lines):
            line.rstrip()
            out.print(Text.assemble((("" if place else name).ljust(indent), "bold"), line), soft_wrap=True)


@contextmanager
def progress_bar(words: str, *, total: int, err: Console | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error if that is a terminal; yield the function that moves it to a value up to `total`."""
    err = err or console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(words, total=total)
        yield lambda place: progress.update(task, completed=place)


def _value(row: Mapping[str, Any], source: str | Callable[[Mapping[str, Any]], str]) -> object:
    return row[source] if isinstance(source, str) else source(row)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_id(source: object) -> bool:
    """Tell whether a column holds ids: people copy them into commands, so they are not grouped in thousands."""
    return isinstance(source, str) and (source == "id" or source.endswith("_id"))


def _cell(value: object, *, is_id: bool = False) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value) if is_id else points(value)
    if isinstance(value, datetime):
        return moment(value)
    return _printable(str(value))


def _printable(text: str) -> str:
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
