"""The command: `python -m benchmarks.compare FOLDER [--only WORDS …] [--rounds N] [--seconds S]`.

It measures this checkout's service beside another checkout's, in alternating rounds. Rates and latencies change by
a third within hours, more than most code changes cause; the ratio of two services that take turns does not.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

import click

from benchmarks import cpu
from benchmarks.busy import ACCOUNTS, CALLERS, sends_of_one, views
from benchmarks.load import Plan, post_send
from benchmarks.options import NotMeasured
from benchmarks.rows import Row, divided, median_interval, named, take_turns
from benchmarks.service import Service, running, stop_with_us
from benchmarks.several import LARGE, sends_of_all
from benchmarks.tables import Table, heading, shown

# The other parts hardly differ.
_FIGURES = ("rate_per_s", "p50_s", *(f"{part} cpu_ms" for part in ("all parts", "web", "worker1", "postgresql")))
_CERTAINTY = 0.9
_PAUSE_S = 0.2
# A part with a smaller share of the CPU time is not shown: it is only a tick or two of the kernel's clock.
_SHOWN_FROM = 0.01
# The prefixes of the figures' names.
_THIS, _OTHER = "this", "other"


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path))
@click.option("--only", multiple=True, metavar="WORDS", help="Only calls with these in their name; may be given again.")
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(1), help="Measurements of each call.")
@click.option("--seconds", default=2.0, show_default=True, help="How long callers call at a time.")
def main(folder: Path, only: Sequence[str], rounds: int, seconds: float) -> None:
    """Compare this checkout with another one, in FOLDER."""
    if not (folder / "app").is_dir():  # Else Python would import this checkout's app.
        raise click.BadParameter(f"{folder} is no checkout of this project.", param_hint="FOLDER")
    names = [name for name in _CALLS if not only or any(words in name for words in only)]
    if not names:
        raise click.BadParameter(f"There are these: {'; '.join(_CALLS)}.", param_hint="--only")
    stop_with_us()
    with ExitStack() as both:
        services = {_THIS: both.enter_context(running()), _OTHER: both.enter_context(running(checkout=folder))}
        plans = {whose: _planned(service, names) for whose, service in services.items()}
        measures = {}
        for name in names:
            sides = [(whose, service, plans[whose][name]) for whose, service in services.items()]
            turns = cycle([sides, sides[::-1]])  # So that neither is always measured after the other.
            measures[named(name)] = partial(_measure_both, turns, seconds, folds=name == _MANY)
        rows = take_turns(measures, rounds=rounds)
    table(rows).print()


def _planned(service: Service, names: Sequence[str]) -> dict[str, list[Plan]]:
    emails = service.accounts("compare", LARGE)
    return {name: _CALLS[name](service, emails) for name in names}


def _of_one(service: Service, emails: Sequence[str], *, callers: int, organizations: int = 1) -> list[Plan]:
    return [sends_of_one(service, emails[:ACCOUNTS], callers=callers) for _ in range(organizations)]


def _of_several_organizations(service: Service, emails: Sequence[str], *, organizations: int) -> list[Plan]:
    """Plan sixteen callers, each sending for all organizations in turn."""
    requests = [post_send(service.sender().key, [email]) for email in emails[:organizations]]
    return [Plan(port=service.port, requests=requests, callers=16)]


def _of_one_now_and_then(service: Service, emails: Sequence[str]) -> list[Plan]:
    """Plan a lone send after a pause: nothing is warm, and nobody shares the costs."""
    return [replace(sends_of_one(service, emails[:ACCOUNTS], callers=1), every_s=_PAUSE_S)]


def _of_many(service: Service, emails: Sequence[str]) -> list[Plan]:
    return [sends_of_all(service, emails)]


def _views(service: Service, _emails: Sequence[str]) -> list[Plan]:
    return [views(service, callers=max(CALLERS))]


_MANY = f"send of {LARGE:,}, callers 1"
# The plans of each call run at the same time.
_CALLS: dict[str, Callable[[Service, Sequence[str]], list[Plan]]] = {
    **{f"send of one, callers {callers}": partial(_of_one, callers=callers) for callers in CALLERS},
    "send of one, two organizations": partial(_of_one, callers=8, organizations=2),
    **{
        f"send of one, {words} organizations": partial(_of_several_organizations, organizations=count)
        for words, count in (("eight", 8), ("sixteen", 16))
    },
    f"send of one, every {_PAUSE_S * 1e3:.0f} ms": _of_one_now_and_then,
    _MANY: _of_many,
    f"/healthz, callers {max(CALLERS)}": _views,
}


def _measure_both(
    turns: Iterator[Sequence[tuple[str, Service, list[Plan]]]], seconds: float, *, folds: bool
) -> dict[str, float]:
    """Measure the same call on both services, one after the other; `folds` waits until all credits are folded."""
    figures = {}
    for whose, service, plans in next(turns):
        for figure, value in cpu.measure_calls(service, *plans, seconds=seconds).items():
            figures[f"{whose} {figure}"] = value
        if folds:
            service.wait_until_folded()
    return figures


def table(rows: Sequence[Row]) -> Table:
    """Return a table of both medians, and of the median ratio (this over other, round by round)."""
    named_rows = {(row.what, row.figure): row for row in rows}
    lines = []
    for name in dict.fromkeys(row.what for row in rows):
        all_parts_ms = named_rows[name, f"{_THIS} all parts cpu_ms"].median
        for figure in _FIGURES:
            this, other = (named_rows[name, f"{whose} {figure}"] for whose in (_THIS, _OTHER))
            if figure.endswith("cpu_ms") and max(this.median, other.median) < _SHOWN_FROM * all_parts_ms:
                continue
            ratio = divided(this, other)
            assert ratio is not None, "both are there"
            ratios = [value for value in ratio.values if math.isfinite(value)]
            if not ratios:
                continue
            least, greatest = median_interval(ratios, certainty=_CERTAINTY)
            medians = [shown(figure, row.median) for row in (other, this)]
            words = f"× {statistics.median(ratios):.3f} ({least:.3f} – {greatest:.3f})"
            lines.append([name if figure == _FIGURES[0] else "", heading(figure), *medians, words])
    headings = ["", "", _OTHER, _THIS, f"{_THIS} / {_OTHER} ({_CERTAINTY:.0%})"]
    return Table(title="compare", headings=headings, lines=lines)


if __name__ == "__main__":
    try:
        main()
    except NotMeasured as reason:
        raise SystemExit(f"Nothing was measured. {reason}") from None
