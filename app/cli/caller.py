"""What the commands share that call the service over HTTP: the key, the URL, and the question before a change."""

import re
import sys

import click

from app.errors import Refused
from app.local.datadir import RUNNING_FILE, DataDir


def read_key(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """Remove blanks and line ends that were copied along. An error never repeats the key."""
    key = text.strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise click.BadParameter("a key holds letters, digits and _ only: copy it once more.")
    return key


key_option = click.option(
    "--key", required=True, envvar="POINTS_KEY", show_envvar=True, callback=read_key, help="The API key to send with."
)
url_option = click.option("--url", help="URL of the service [default: the one that runs from the data directory].")
patience_option = click.option(
    "--patience", default=300.0, show_default=True, help="Seconds to wait for a service that is away or busy."
)


def running_url(data_dir: str) -> str:
    """Return the URL that `points up` has noted in the data directory.

    Raises:
        Refused: no service runs from there.
    """
    datadir = DataDir(data_dir)
    url = datadir.read(RUNNING_FILE).get("web_url")
    if url is None:
        raise Refused(
            f"No service runs from {datadir.path}: say where it is with --url, or start one with `points up`."
        )
    return str(url)


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
