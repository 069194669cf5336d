"""The command: `python -m benchmarks.compare FOLDER [--only WORDS …] [--rounds N] [--seconds S]`.

This checkout's service beside that of another checkout, round by round: what a change is judged by. Rates
and latencies move by a third with the hour, more than most changes do; the ratio of two services that take
turns does not.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from benchmarks import cpu
from benchmarks.busy import ACCOUNTS, CALLERS, sends_of_one, views
from benchmarks.load import Plan, post_send
from benchmarks.options import NotMeasured
from benchmarks.rows import likely
from benchmarks.service import Service, running, stop_with_us
from benchmarks.several import LARGE
from benchmarks.tables import Table, heading, shown

# The service's other parts hardly differ.
_FIGURES = ("rate_per_s", "p50_s", *(f"{part} cpu_ms" for part in ("all parts", "web", "worker1", "postgresql")))
_CERTAINTY = 0.9

# What was seen of one call in one round: the figures of this checkout, and those of the other.
Pair = tuple[Mapping[str, float], Mapping[str, float]]


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path))
@click.option("--only", multiple=True, metavar="WORDS", help="Only calls with these in their name; may be given again.")
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(1), help="Looks at each call.")
@click.option("--seconds", default=2.0, show_default=True, help="How long callers call at a time.")
def main(folder: Path, only: Sequence[str], rounds: int, seconds: float) -> None:
    """Compare this checkout with another one, in FOLDER, whose database has the same tables."""
    if not (folder / "app").is_dir():  # Python would find this checkout's own.
        raise click.BadParameter(f"{folder} is no checkout of this project.", param_hint="FOLDER")
    names = [name for name in _CALLS if not only or any(words in name for words in only)]
    if not names:
        raise click.BadParameter(f"There are these: {'; '.join(_CALLS)}.", param_hint="--only")
    stop_with_us()
    with ExitStack() as both:
        services = [both.enter_context(running()), both.enter_context(running(checkout=folder))]
        plans = [_planned(service, names) for service in services]
        seen: dict[str, list[Pair]] = {name: [] for name in names}
        for turn in range(rounds + 1):
            for name in names:
                pair = _look(name, services, plans, seconds, first=turn % 2)
                if turn > 0:  # One round goes before to warm up.
                    seen[name].append(pair)
    table(seen).print()


def _planned(service: Service, names: Sequence[str]) -> dict[str, list[Plan]]:
    emails = service.accounts("compare", LARGE)
    return {name: _CALLS[name](service, emails) for name in names}


def _of_one(service: Service, emails: Sequence[str], *, callers: int, organizations: int = 1) -> list[Plan]:
    return [sends_of_one(service, emails[:ACCOUNTS], callers=callers) for _ in range(organizations)]


def _of_sixteen_organizations(service: Service, emails: Sequence[str]) -> list[Plan]:
    """Plan sixteen callers, each of whom sends for all of the organizations in turn."""
    requests = [post_send(service.sender().key, [email]) for email in emails[:16]]
    return [Plan(port=service.port, requests=requests, callers=16)]


def _of_many(service: Service, emails: Sequence[str]) -> list[Plan]:
    return [Plan(port=service.port, requests=[post_send(service.sender().key, emails)], callers=1)]


def _views(service: Service, _emails: Sequence[str]) -> list[Plan]:
    return [views(service, callers=max(CALLERS))]


_MANY = f"send of {LARGE:,}, callers 1"
# What is called, by its name; the plans of a call go at the same time.
_CALLS: dict[str, Callable[[Service, Sequence[str]], list[Plan]]] = {
    **{f"send of one, callers {callers}": partial(_of_one, callers=callers) for callers in CALLERS},
    "send of one, two organizations": partial(_of_one, callers=8, organizations=2),
    "send of one, sixteen organizations": _of_sixteen_organizations,
    _MANY: _of_many,
    f"/healthz, callers {max(CALLERS)}": _views,
}


def _look(
    name: str, services: Sequence[Service], plans: Sequence[Mapping[str, list[Plan]]], seconds: float, *, first: int
) -> Pair:
    """Look at the same call of both services, at one after the other: neither shall always pay for the other."""
    seen: dict[int, Mapping[str, float]] = {}
    for place in (first, 1 - first):
        seen[place] = cpu.look(services[place], *plans[place][name], seconds=seconds)
        if name == _MANY:
            services[place].wait_until_folded()
    return seen[0], seen[1]


def table(seen: Mapping[str, Sequence[Pair]]) -> Table:
    """Put the medians of both beside each other, and the median of what was this over the other in each round."""
    lines = []
    for name, pairs in seen.items():
        for figure in _FIGURES:
            this, other = zip(*((here[figure], there[figure]) for here, there in pairs), strict=True)
            ratios = [here / there for here, there in zip(this, other, strict=True) if there]
            if not ratios:
                continue
            least, greatest = likely(ratios, certainty=_CERTAINTY)
            medians = [shown(figure, statistics.median(values)) for values in (other, this)]
            ratio = f"× {statistics.median(ratios):.3f} ({least:.3f} – {greatest:.3f})"
            lines.append([name if figure == _FIGURES[0] else "", heading(figure), *medians, ratio])
    return Table(title="compare", headings=["", "", "other", "this", f"this / other ({_CERTAINTY:.0%})"], lines=lines)


if __name__ == "__main__":
    try:
        main()
    except NotMeasured as reason:
        raise SystemExit(f"Nothing was measured. {reason}") from None
