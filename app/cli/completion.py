"""`points completion`: the scripts with which bash, zsh or fish complete the commands and their options."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
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
