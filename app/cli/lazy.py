"""The group of all commands, which imports a command only when it is used, and `points completion`."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class


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
