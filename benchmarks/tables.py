"""Tables of figures, for a terminal and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.aims import AIMS, Sections
from benchmarks.rows import Row, divided, find

_WIDTH = 180
_COLUMNS_MAX = 8


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; the first cell of each line names it."""

    title: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]

    def print(self) -> None:
        table = RichTable(title=self.title, title_justify="left")
        for place, heading in enumerate(self.headings):
            table.add_column(heading, justify="left" if place == 0 else "right")
        for line in self.lines:
            table.add_row(*line)
        Console(width=_WIDTH).print(table)

    def as_markdown(self) -> str:
        marks = ["---"] + ["---:"] * (len(self.headings) - 1)
        return "".join(f"| {' | '.join(line)} |\n" for line in (self.headings, marks, *self.lines))


def of_section(section: str, rows: Sequence[Row]) -> Table:
    """Return a section's table: a line a measurement and a column a figure, transposed if there are many figures."""
    rows = _beside_floor(rows)
    figures = list(dict.fromkeys(row.figure for row in rows))
    names = list(dict.fromkeys(_name(row) for row in rows))
    cells = {(_name(row), row.figure): spread(row) for row in rows}
    if len(figures) > _COLUMNS_MAX:
        lines = [[heading(figure), *(cells.get((name, figure), "") for name in names)] for figure in figures]
        return Table(title=section, headings=["", *names], lines=lines)
    lines = [[name, *(cells.get((name, figure), "") for figure in figures)] for name in names]
    return Table(title=section, headings=["", *map(heading, figures)], lines=lines)


def of_aims(sections: Sections) -> Table:
    """Return the table of all figures with an aim."""
    lines = []
    for aim in AIMS:
        row, sign = aim.of(sections), "≤" if aim.at_most else "≥"
        measured = "" if row is None else spread(row) + aim.unit
        aims = [f"{sign} {number(value)}{aim.unit}" for value in (aim.first, aim.final)]
        lines.append([aim.name, measured, *aims, aim.verdict(row)])
    return Table(title="aims", headings=["figure", "measured", "first aim", "final aim", ""], lines=lines)


def _beside_floor(rows: Sequence[Row]) -> list[Row]:
    """Add to each time its floor and the multiple of the floor, if measured together."""
    measures, beside = [row for row in rows if row.what != "floor"], []
    for row in measures:
        if row.figure == "time_s" and (floor := find(rows, "floor", "time_s", recipients=row.of.get("recipients", 1))):
            multiple = divided(row, floor)
            assert multiple is not None, "both are there"
            beside += [replace(floor, what=row.what, of=row.of, figure="floor_s"), replace(multiple, figure="× floor")]
    return [*measures, *beside] if beside else list(rows)


def _name(row: Row) -> str:
    """Return a measurement's name: `send of one, 32 callers, events off`."""
    return ", ".join([row.what, *(_variant(key, value) for key, value in row.of.items())])


def _variant(key: str, value: int | str) -> str:
    if isinstance(value, str):
        return f"{key} {value}"
    return f"{value:,} {key.removesuffix('s') if value == 1 else key}"


def spread(row: Row) -> str:
    """Return a row's median, with its least and greatest value."""
    median, least, greatest = (shown(row.figure, value) for value in (row.median, min(row.values), max(row.values)))
    return median if len(row.values) == 1 else f"{median} ({least} – {greatest})"


def shown(figure: str, value: float) -> str:
    """Return a value as text; times, stored in seconds, are shown in milliseconds."""
    return number(1e3 * value if _is_time(figure) else value)


def heading(figure: str) -> str:
    """Return a figure's name with the unit of its shown values."""
    name = figure.removesuffix("_s") + "_ms" if _is_time(figure) else figure
    return name.replace("_per_s", " per s").replace("_ms", ", ms").replace("_bytes", ", bytes")


def _is_time(figure: str) -> bool:
    return figure.endswith("_s") and not figure.endswith("_per_s")


def number(value: float) -> str:
    """Return a number with three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value == 0 or abs(value) >= 1e-3 else f"{value:.1e}"
