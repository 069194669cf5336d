"""What a command tells a person or a program: its answer, an error, and a question before a change."""

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from app.errors import Refused
from app.values.texts import in_utf8
from app.values.timestamps import timestamp

# What a cell is made of: the key of a row, or a function of it.
Cell = str | Callable[[Mapping[str, Any]], str]
Columns = Mapping[str, Cell]  # By their headings.
_HEADINGS = {"id": "ID", "email": "E-mail"}


def columns(*cells: str | tuple[str, Cell]) -> Columns:
    """Return the columns of a table, each with a heading, or with that which its key says: `created_at`, Created."""
    return dict(cell if isinstance(cell, tuple) else (_heading(cell), cell) for cell in cells)


def _heading(key: str) -> str:
    word = key.removeprefix("is_").removesuffix("_at").removesuffix("_id").replace("_", " ")
    return _HEADINGS.get(key, word.capitalize())


def document(row: Any, **more: object) -> dict[str, Any]:
    """Turn a row of a noun, a NamedTuple or a dataclass, into a JSON document; a document stays one."""
    known = row if isinstance(row, Mapping) else row._asdict() if hasattr(row, "_asdict") else asdict(row)
    return {**known, **more}


class Answer:
    """The answer of a command: a document for `--json`, and a sentence or a table for a person.

    The document may be a noun's row, or a list of them. With `columns`, it is printed as a table, or the `rows` of it
    that are given.
    `faults` are sentences about the command's input. They go to standard error; the document has them in its own form.
    """

    def __init__(
        self,
        content: Any,
        *,
        sentence: str | None = None,
        columns: Columns | None = None,
        rows: Sequence[Mapping[str, Any]] | None = None,
        faults: Sequence[str] = (),
        exit_status: int = 0,
    ) -> None:
        self._document = list(map(document, content)) if isinstance(content, list) else document(content)
        self._sentence = sentence
        self._columns = columns
        self._rows = rows
        self._faults = faults
        self.exit_status = exit_status

    def print(self, *, as_json: bool) -> None:
        for fault in self._faults:
            click.echo(fault, err=True)
        if as_json:
            # Not with orjson: a user may have more points than fit in 64 bits.
            click.echo(json.dumps(_writable(self._document), default=_plain, indent=2, ensure_ascii=False))
            return
        if self._columns is not None:
            whole = [self._document] if isinstance(self._document, Mapping) else self._document
            from app.cli.tables import print_table  # noqa: PLC0415  # Most answers are sentences and need no table.

            print_table(whole if self._rows is None else self._rows, self._columns)
        if self._sentence is not None:
            click.echo(self._sentence)


def _writable(value: Any) -> Any:
    """Put replacement characters where a file or its name was not in UTF-8: JSON cannot hold the bytes."""
    if isinstance(value, str):
        return in_utf8(value)
    if isinstance(value, Mapping):
        return {key: _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return timestamp(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def write_error(sentence: str) -> None:
    """Write a sentence on standard error: whole for a program, wrapped between words for a person."""
    lines = f"points: {sentence}".splitlines()
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines]
    sys.stderr.write("\n".join(lines) + "\n")


def confirms(question: str, *, nothing_done: str, how: str, err: bool) -> bool:
    """Ask on the terminal, or read the answer from standard input.

    Raises:
        Refused: there was no answer. The sentence says `nothing_done`, and what --yes does without asking (`how`).
    """
    if sys.stdin is not None:  # None if it was closed.
        click.echo(err=err)
        try:
            return click.confirm(question, err=err)
        except click.Abort:
            click.echo(err=err)  # End the question's line.
            if sys.stdin.isatty():  # Ctrl-C or Ctrl-D.
                return False
    raise Refused(f"{nothing_done}: there was no answer. Use --yes to {how} without being asked.")
