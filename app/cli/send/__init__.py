"""`points send`: a person's way to issue points to the recipients of a CSV file, from anywhere."""

import re
import sys
from pathlib import Path
from typing import Any

import click

from app.cli.answer import data_dir_option, json_option
from app.cli.send import stages
from app.cli.send.report import report
from app.cli.send.run import Choices, prepared
from app.errors import Refused
from app.local.datadir import RUNNING_FILE, DataDir
from app.local.interrupts import end_gently
from app.settings import INT64_MAX
from app.utf8 import is_utf8


def _in_utf8(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """Refuse what no body and no idempotency key can be made of."""
    if text is not None and not is_utf8(text):
        raise click.BadParameter("it is not in UTF-8.")
    return text


def _label(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """An empty label is none, as in the interface: it must not make another campaign of one that was paid."""
    return _in_utf8(context, parameter, text) or None


def _campaign(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Refuse a name that somebody has forgotten to give, as with a variable that is not set: it would pay again."""
    if text is not None and not text.strip():
        raise click.BadParameter("the new campaign needs a name.")
    return _in_utf8(context, parameter, text)


def _key(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """Take the blanks and line ends away that come along when a key is copied, and never repeat it."""
    key = text.strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise click.BadParameter("a key holds letters, digits and _ only: copy it once more.")
    return key


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--amount", required=True, type=click.IntRange(1, INT64_MAX), help="Points for each recipient.")
@click.option(
    "--key", required=True, envvar="POINTS_KEY", show_envvar=True, callback=_key, help="The API key to send with."
)
@click.option("--url", help="Where the service is [default: the one that runs from the data directory].")
@click.option("--label", callback=_label, help="Kept on every transaction.")
@click.option("--atomic", is_flag=True, help="Debit nobody of a batch that the balance cannot pay whole.")
@click.option("--column", metavar="NAME", help="The column of the e-mail addresses: its heading or number.")
@click.option(
    "--again",
    metavar="NAME",
    callback=_campaign,
    help="Deliberately pay this file again, as a new campaign with this name.",
)
@click.option(
    "--result",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the outcome of each line [default: people.result.csv for people.csv]. An existing result of"
    " another campaign, or of one in the sandbox, is kept as people.result.1.csv.",
)
@click.option(
    "--patience", default=300.0, show_default=True, help="Seconds to wait for a service that is away or busy."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@data_dir_option
def send(as_json: bool, data_dir: str, url: str | None, key: str, **choices: Any) -> None:
    """Issue points to every recipient of a CSV file: verify, ask, send, and write what became of each line.

    The e-mail addresses may stand in any column, with a heading or without, between commas,
    semicolons, tabs or bars. Bad lines and repeated addresses are named and left out; exit status 1. It is 0 when
    every line was sent, also where the balance paid only the first of them: the outcome says how many.

    Giving the command again never pays twice, and carries on what was interrupted: each batch goes
    under an idempotency key made from the addresses, the amount, the label and the batch's number.
    Keep the result file beside the list: it stops a list that was changed, or sent more than 30 days
    ago, from paying again.
    """
    end_gently()  # The scheduler of a machine stops it as gently as a person does.
    chosen = Choices(as_json=as_json, url=url or _running(DataDir(data_dir)), key=key, **choices)
    with prepared(chosen) as run:
        stages.verify(run)
        stages.ask(run)
        stages.send(run)
        status = report(run)
    sys.exit(status)


def _running(datadir: DataDir) -> str:
    """Return the address that `points up` has noted in the data directory.

    Raises:
        Refused: nothing runs from there.
    """
    url = datadir.read(RUNNING_FILE).get("web_url")
    if url is None:
        raise Refused(
            f"No service runs from {datadir.path}: say where it is with --url, or start one with `points up`."
        )
    return str(url)
