"""`--publish`: write the plots to docs/plots, and the tables between their markers in the documents."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks import tables
from benchmarks.aims import Sections
from benchmarks.busy import CALLERS
from benchmarks.floor import SIZES
from benchmarks.growth import MILLIONS
from benchmarks.rows import Row, divided, find
from benchmarks.svg import Bars

ROOT = Path(__file__).parent.parent


def publish(documents: Mapping[str, Any], sections: Sections, *, root: Path = ROOT) -> None:
    """Write the plots, and replace each table; a section without markers is left out."""
    docs = root / "docs"
    (docs / "plots").mkdir(exist_ok=True)
    for name, bars in _PLOTS.items():
        (docs / "plots" / f"{name}.svg").write_text(bars(sections).as_svg())
    inserts: dict[str, str] = {}
    for section, rows in sections.items():
        table = tables.of_section(section, rows).as_markdown()
        inserts[section] = f"{fill(circumstances(documents[section]), 120, break_on_hyphens=False)}\n\n{table}"
    for place, name in _PLOTTED.items():
        inserts[place] = f"![{_PLOTS[name](sections).title}](../docs/plots/{name}.svg)\n\n{inserts.get(place, '')}"
    _insert(root / "benchmarks" / "RESULTS.md", inserts)
    _insert(docs / "performance.md", {"aims": tables.of_aims(sections).as_markdown()})
    _insert(root / "README.md", {"plot": f"![{_busy(sections).title}](docs/plots/busy.svg)\n"})


def _insert(page: Path, inserts: Mapping[str, str]) -> None:
    text = page.read_text()
    for name, insert in inserts.items():
        text = put(text, name, insert)
    page.write_text(text)


def put(text: str, name: str, table: str) -> str:
    """Replace the table between the markers `<!-- bench: name -->` and `<!-- /bench -->`, if they are there."""
    marked = re.compile(rf"(<!-- bench: {re.escape(name)} -->\n).*?(<!-- /bench -->)", re.DOTALL)
    return marked.sub(lambda match: f"{match[1]}{table}{match[2]}", text)


def circumstances(document: Mapping[str, Any]) -> str:
    """Return one line: the date, the commit, the machine and the given settings of a section."""
    settings = "".join(f", {name}={value}" for name, value in document.get("settings", {}).items())
    return (
        f"{document['date']}, commit {document['commit']}, {document['machine']}, {document['cores']} cores,"
        f" PostgreSQL {document['postgresql']}, {document['durability']}, load average {document['load_average']}"
        f" before, rounds {document['rounds']}, callers for {document['seconds']:g} s at a time{settings}."
    )


def _beside_floor(sections: Sections) -> Bars:
    def times(section: str, what: str, **of: int | str) -> Sequence[Row | None]:
        rows = sections.get(section, ())
        return [
            divided(
                find(rows, what, "time_s", recipients=size, **of),
                find(rows, "floor", "time_s", recipients=size),
            )
            for size in SIZES
        ]

    return Bars(
        title="A send beside what PostgreSQL needs to COPY its rows",
        unit="times the floor, by recipients",
        groups=[f"{size:,}" for size in SIZES],
        series=[
            ("worker body, all with accounts", times("body", "worker body", accounts="all")),
            ("whole send, HTTP in, 201 out", times("send", "whole send")),
            ("the same as items of different amounts", times("send", "send of items")),
        ],
    )


def _busy(sections: Sections) -> Bars:
    rows = sections.get("busy", ())

    def rates(what: str, **of: int | str) -> Sequence[Row | None]:
        return [find(rows, what, "rate_per_s", callers=callers, **of) for callers in CALLERS]

    return Bars(
        title="One busy organization: sends of one recipient",
        unit="per second, by callers",
        groups=[f"{callers} caller{'s' * (callers > 1)}" for callers in CALLERS],
        series=[
            ("send", rates("send of one", events="off")),
            ("send, worker events on", rates("send of one", events="on")),
            ("empty view", rates("/healthz", events="off")),
            ("pgbench: transaction per send", rates("pgbench, transaction per send")),
            ("UPDATE of one row", rates("pgbench, UPDATE of one row")),
        ],
    )


def _growth(sections: Sections) -> Bars:
    rows = sections.get("growth", ())
    found = [find(rows, "worker body", "time_s", millions=millions) for millions in MILLIONS]
    in_ms = [None if row is None else replace(row, values=[1e3 * value for value in row.values]) for row in found]
    return Bars(
        title="Growth: issuing 10,000 on top of what is stored",
        unit="milliseconds, by transactions stored",
        groups=[f"{millions} million" if millions else "none" for millions in MILLIONS],
        series=[("worker body", in_ms)],
    )


_PLOTS = {"beside-the-floor": _beside_floor, "busy": _busy, "growth": _growth}
# The marker of each plot in benchmarks/RESULTS.md.
_PLOTTED = {"send": "beside-the-floor", "busy": "busy", "growth": "growth"}
