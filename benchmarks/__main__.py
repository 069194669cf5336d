"""The command: `python -m benchmarks [--only SECTION …] [--rounds N] [--seconds S] [--quick] [--publish]`."""

import signal
from typing import Protocol

import click

from benchmarks import cpu, results, tables
from benchmarks.rows import Row


class _Measure(Protocol):
    def __call__(self, *, rounds: int, seconds: float) -> list[Row]: ...


SECTIONS: dict[str, _Measure] = {"cpu": cpu.measure}


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(SECTIONS)), help="A section; may be given again.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(1), help="Looks at each figure.")
@click.option("--seconds", default=3.0, show_default=True, help="How long callers call at a time.")
def main(only: tuple[str, ...], rounds: int, seconds: float) -> None:
    """Measure, print the tables and write benchmarks/results.json. It reports and never fails on a figure."""
    signal.signal(signal.SIGTERM, _stop)
    for section in only or SECTIONS:
        rows = SECTIONS[section](rounds=rounds, seconds=seconds)
        results.put(section, rows, rounds=rounds, seconds=seconds)
        tables.show(section, rows)


def _stop(*_: object) -> None:
    """End as Ctrl-C does, so that the service under test is stopped too."""
    raise SystemExit("Stopped before the end.")


if __name__ == "__main__":
    main()
