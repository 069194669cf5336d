"""A progress bar on standard error, only on a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from app.cli.tables import console


@contextmanager
def progress_bar(words: str, *, total: int, err: Console | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar, and yield the function that moves it to a value between 0 and `total`."""
    err = err or console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(words, total=total)
        yield lambda place: progress.update(task, completed=place)
