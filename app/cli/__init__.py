"""`points`: the commands of the people who run the service, one file for each group of commands."""

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from app.cli.answer import write_error
from app.errors import InvalidAddress, PointsError, SettingsError

_COMMANDS = {
    "up": ("app.cli.up", "Run the whole service in this terminal until Ctrl-C."),
    "status": ("app.cli.status", "Show whether all is well, and what runs where."),
    "migrate": ("app.cli.operating", "Bring the database up to date."),
    "restored": ("app.cli.operating", "Leave ids and numbers behind after a restore from a backup."),
    "organizations": ("app.cli.organizations", "Make, show, refill, disable and suspend organizations."),
    "keys": ("app.cli.access", "Make, list and revoke API keys."),
    "platform-keys": ("app.cli.access", "Make, list and revoke the keys of the platform's own programs."),
    "members": ("app.cli.access", "Make, list and remove the people who may use the console."),
    "webhooks": ("app.cli.operating", "List webhooks with how far they are behind."),
    "users": ("app.cli.users", "Register, show, change and erase users."),
    "send": ("app.cli.send", "Issue points to every recipient of a list."),
    "reverse": ("app.cli.reverse", "Take back what is left of a batch."),
    "events": ("app.cli.events", "Follow what happens."),
    "statement": ("app.cli.reports", "Show what moved a balance in a month, day by day."),
    "export": ("app.cli.export", "Write all transactions, batches or reversals of an organization."),
    "actions": ("app.cli.reports", "Show who did what, newest first."),
    "audit": ("app.cli.operating", "Check that the books balance."),
    "completion": ("app.cli", "Print the completion script of a shell for these commands."),
}


class Commands(click.Group):
    """Commands by name: the module that defines each under that name, and its line in the help.

    Importing all of them takes a second, mostly for SQLAlchemy and Celery. Help, completion and sending a file do not
    need those.
    """

    def __init__(self, *arguments: Any, modules: Mapping[str, tuple[str, str]], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.modules:
            return None
        command: click.Command = getattr(import_module(self.modules[cmd_name][0]), cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:  # Click knows only the names of imported commands.
            raise click.NoSuchCommand(error.command_name, possibilities=self.modules, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.modules.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [
            CompletionItem(name, help=line) for name, (_, line) in self.modules.items() if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=Commands, modules=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="points-issuing-service", prog_name="points")
def points() -> None:
    """Issue loyalty points to lists of recipients.

    DATABASE_URL, REDIS_URL and the POINTS_… settings come from the environment. With neither URL set,
    commands use the embedded servers of the data directory, and start the database if it does not run.
    """


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell for these commands.

    \b
    bash:  points completion bash >> ~/.bashrc
    zsh:   points completion zsh >> ~/.zshrc
    fish:  points completion fish > ~/.config/fish/completions/points.fish
    """
    complete = get_completion_class(shell)
    assert complete is not None, "click completes for the three shells of the choice"
    click.echo(complete(context.find_root().command, {}, "points", "_POINTS_COMPLETE").source())


def main() -> None:
    """Run a command; an expected error is one sentence on standard error, with exit status 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file's name or a dash may have characters that this terminal cannot show. That must not end a command.
            stream.reconfigure(errors="backslashreplace")
    try:
        points(prog_name="points")
    except InvalidAddress as error:
        write_error(f"EMAIL {error.sentence}")
        sys.exit(1)
    except (PointsError, SettingsError) as error:
        write_error(str(error))
        sys.exit(1)
    except OSError as error:  # For example, the disk is full, or a file may not be read.
        write_error(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}.")
        _give_output_up()
        sys.exit(1)


def _give_output_up() -> None:
    """Discard unwritten output: some versions of Python try to write it again at the end, and show a traceback."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
