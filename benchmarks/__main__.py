"""The command: `python -m benchmarks [SECTION …] [--rounds N] [--seconds S] [--quick] [--rows N] [--publish]`."""

from collections.abc import Callable
from pathlib import Path

import click

from benchmarks import (
    adopting,
    apart,
    body,
    busy,
    cost,
    cpu,
    floor,
    growth,
    idle,
    results,
    rivalry,
    scale,
    send,
    several,
    tables,
    year,
)
from benchmarks import publish as publishing
from benchmarks.options import NotMeasured, Options
from benchmarks.rows import Row
from benchmarks.service import stop_with_us

SECTIONS: dict[str, Callable[[Options], list[Row]]] = {
    "floor": floor.measure,
    "body": body.measure,
    "send": send.measure,
    "busy": busy.measure,
    "idle": idle.measure,
    "several": several.measure,
    "rival": rivalry.measure,
    "growth": growth.measure,
    "cost": cost.measure,
    "cpu": cpu.measure,
    "adopting": adopting.measure,
    "apart": apart.measure,
    "scale": scale.measure,
    "year": year.measure,
}
# They take too long to be measured with all others.
_ONLY_IF_NAMED = {"scale", "year"}


@click.command()
@click.argument("sections", nargs=-1, type=click.Choice(list(SECTIONS)))
@click.option("--only", multiple=True, type=click.Choice(list(SECTIONS)), help="A section; may be given again.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(1), help="Measurements of each figure.")
@click.option("--seconds", default=3.0, show_default=True, help="How long callers call at a time.")
@click.option("--output", default=results.RESULTS, type=click.Path(path_type=Path), help="Where the figures are kept.")
@click.option("--quick", is_flag=True, help="Leave out 10 million rows; a year has 3 days.")
@click.option("--rows", default=100_000_000, show_default=True, help="Where the section `scale` ends.")
@click.option("--publish", is_flag=True, help="Write the plots and the tables into the pages.")
def main(
    sections: tuple[str, ...],
    only: tuple[str, ...],
    rounds: int,
    seconds: float,
    output: Path,
    quick: bool,
    rows: int,
    publish: bool,
) -> None:
    """Measure, print the tables and store the figures. No figure makes it fail."""
    stop_with_us()
    options = Options(rounds=rounds, seconds=seconds, quick=quick, rows=rows)
    failed: list[str] = []
    for section in (*sections, *only) or [name for name in SECTIONS if name not in _ONLY_IF_NAMED]:
        try:
            measured = SECTIONS[section](options)
        except NotMeasured as reason:
            click.echo(f"{section} was not measured. {reason}", err=True)
            failed.append(section)
            continue
        results.put(section, measured, options, path=output)
        tables.of_section(section, measured).print()
    documents = results.read(output)
    kept = results.rows_of(documents)
    tables.of_aims(kept).print()
    if publish:
        publishing.publish(documents, kept)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
