"""`points send`: issue points to the recipients of a list over HTTP."""

import gc
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from app.cli.options import calling_options, data_dir_option, json_option, patience_option, workbook_options, yes_option
from app.cli.send import output, steps
from app.cli.send.run import Choices
from app.cli.service import running_url
from app.errors import Refused
from app.local.terminal import end_gently
from app.settings import INT64_MAX
from app.values.numbers import figure_of
from app.values.texts import is_utf8


def _text(_context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Refuse text that is not UTF-8, and a blank --again, which would start another campaign by accident."""
    if text is not None and not is_utf8(text):
        raise click.BadParameter("it is not in UTF-8.")
    if text is not None and parameter.name == "again" and not text.strip():
        raise click.BadParameter("the new campaign needs a name.")
    return text or None


class _Figure(click.IntRange):
    """A number of points, also as the plan writes it, such as 1,000."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(figure_of(str(value)) or value, param, ctx)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--amount", type=_Figure(1, INT64_MAX), help="Points for each recipient [default: the list's column].")
@calling_options
@click.option("--label", callback=_text, help="The label of every transaction whose line has none.")
@click.option("--atomic", is_flag=True, help="Debit nobody if the balance cannot pay the whole batch.")
@workbook_options
@click.option("--column", metavar="NAME", help="The column of the e-mail addresses: its heading or number.")
@click.option("--amount-column", metavar="NAME", help="The column of each line's points.")
@click.option("--reference-column", metavar="NAME", help="The column of each line's reference.")
@click.option("--label-column", metavar="NAME", help="The column of each line's label.")
@click.option(
    "--again",
    metavar="NAME",
    callback=_text,
    help="Deliberately pay this list again, as a new campaign with this name.",
)
@click.option(
    "--result",
    type=click.Path(path_type=Path),
    help="Where to write the outcome of each line [default: people.result.csv for people.csv].",
)
@patience_option
@yes_option
@json_option
@data_dir_option
def send(as_json: bool, data_dir: str, url: str | None, key: str, **choices: Any) -> None:
    """Issue points to every recipient of a list: verify, ask, send, and write the outcome of each line.

    The list is a workbook (.xlsx, .xls, .ods), or a CSV file in UTF-8, UTF-16 or Windows-1252, with
    commas, semicolons or tabs. Of several sheets the one with addresses is read; --sheet names another.
    The column whose heading is “e-mail” is paid; --column names another. Without --amount, the column “amount” or
    “points”, or --amount-column, gives each line's own points. Columns “reference” and “label” are used if they
    are there, or named; an address may come twice if each line has a reference. The plan names the columns that
    are not used. Bad lines and other repeated addresses are listed and left out. Exit status: 0 when every
    line was sent, even if the balance could not pay them all; 3 when lines were left out; 1 when not all
    was sent.

    The same command again never pays twice: it continues an interrupted run. Each batch has an idempotency
    key, made of the addresses, references and labels, --amount, --label and the batch's number. Keep the
    result file beside the list, and do not change it: it prevents a second payment when the list has
    changed, or was sent more than 30 days ago.
    """
    if choices["amount"] is not None and choices["amount_column"] is not None:
        raise click.UsageError("Give --amount for all, or --amount-column for each line's own points, not both.")
    end_gently()
    # The objects of 10,000 recipients and their transactions are made at once, and hold no cycles: looking for some
    # after each 700 took a quarter of the CPU.
    gc.set_threshold(100_000)
    chosen = Choices(as_json=as_json, url=url or running_url(data_dir), key=key, **choices)
    with ExitStack() as stack:
        try:
            run = stack.enter_context(steps.prepared(chosen))
            steps.ask(run)
        except KeyboardInterrupt:
            raise Refused("Nothing was sent.") from None
        steps.send(run)
        status = output.report(run)
    sys.exit(status)
