"""The options and arguments that several commands have."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeVar

import click

from app.errors import Fault, Faults, Refused
from app.local.datadir import DEFAULT
from app.recipient_files.text import INCLUDE, LEAVE_OUT, HiddenRowsUnclear, ListText, SheetUnclear, opened
from app.values.ids import require_id

Command = TypeVar("Command", bound=Callable[..., Any])


class RowId(click.ParamType[int]):
    """The id of a row. One that is too large for any row's id is refused like the id of a missing row."""

    name = "integer"

    def __init__(self, noun: str) -> None:
        self._noun = noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = click.INT.convert(value, param, ctx)
        require_id(self._noun, number)
        return number


ORGANIZATION_ID = RowId("organization")


def in_words_of_options(faults: Faults, options: Mapping[str, str]) -> str:
    """Return the faults of a query whose parameters were given as `options`, by their names."""
    words = (
        sentence.about(options[name]) if isinstance(sentence, Fault) else sentence
        for name, sentences in faults.items()
        for sentence in sentences
    )
    return " ".join(dict.fromkeys(words))  # A period has one sentence for both of its ends.


def read_key(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """Remove blanks and line ends that were copied along. An error never repeats the key."""
    key = text.strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise click.BadParameter("a key holds letters, digits and _ only: copy it once more.")
    return key


_key_option = click.option(
    "--key", required=True, envvar="POINTS_KEY", show_envvar=True, callback=read_key, help="The API key to send with."
)


def _url(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """Refuse an empty URL: a script whose variable is not set must not pay at the service on this machine."""
    if text is not None and not text.strip():
        raise click.BadParameter("it is empty.")
    return text


_url_option = click.option(
    "--url", callback=_url, help="URL of the service [default: the one that runs from the data directory]."
)


def _patience(_context: click.Context, _parameter: click.Parameter, seconds: float) -> float:
    if not seconds >= 0:  # NaN too, which a range would let through.
        raise click.BadParameter("it must be 0 or more seconds.")
    return seconds


patience_option = click.option(
    "--patience",
    default=300.0,
    show_default=True,
    callback=_patience,
    help="Seconds to wait for a service that is away or busy.",
)


def calling_options(command: Command) -> Command:
    """Give a command that calls the service the key that it calls with, and the URL."""
    return _key_option(_url_option(command))


_sheet_option = click.option(
    "--sheet", metavar="NAME", help="The sheet of a workbook: its name or number [default: the one with addresses]."
)
_hidden_rows_option = click.option(
    "--hidden-rows", type=click.Choice([INCLUDE, LEAVE_OUT]), help="What becomes of rows that are hidden in a workbook."
)


def workbook_options(command: Command) -> Command:
    """Give a command that reads a list what a person says about a workbook."""
    return _sheet_option(_hidden_rows_option(command))


yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
data_dir_option = click.option(
    "--data-dir",
    envvar="POINTS_DATA_DIR",
    default=DEFAULT,
    show_default=True,
    show_envvar=True,
    type=click.Path(file_okay=False),
    help="Where the embedded servers keep their data.",
)


@contextmanager
def opened_list(raw: BinaryIO, name: str, sheet: str | None, hidden_rows: str | None) -> Iterator[ListText]:
    """Open a list.

    Raises:
        Refused: it cannot be read; or --sheet or --hidden-rows is needed.
    """
    try:
        with opened(raw, name, sheet=sheet, hidden_rows=hidden_rows) as text:
            yield text
    except HiddenRowsUnclear as error:
        raise Refused(f"{error.sentence} Choose with --hidden-rows {INCLUDE} or {LEAVE_OUT}.") from None
    except SheetUnclear as error:
        raise Refused(f"{error.sentence} Choose one with --sheet, by name or number.") from None
