"""Tables of figures: made once, printed on a terminal or written as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.aims import AIMS, Sections
from benchmarks.rows import Row, find, over

_WIDTH = 180
_COLUMNS_MAX = 8


@dataclass(frozen=True, kw_only=True)
class Table:
    """A heading a column, and lines of as many cells; the first cell of a line names it."""

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
    """Put a section's figures together: a line a measure, a column a figure, or turned where figures are many."""
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
    """Put every figure that speed is judged by beside its aims."""
    lines = []
    for aim in AIMS:
        row, sign = aim.of(sections), "≤" if aim.at_most else "≥"
        measured = "" if row is None else spread(row) + aim.unit
        aims = [f"{sign} {number(value)}{aim.unit}" for value in (aim.first, aim.final)]
        lines.append([aim.name, measured, *aims, aim.verdict(row)])
    return Table(title="aims", headings=["figure", "measured", "first aim", "final aim", ""], lines=lines)


def _beside_floor(rows: Sequence[Row]) -> list[Row]:
    """Put the floor of its size, and the multiple of it, beside each time that it was measured with."""
    measures, beside = [row for row in rows if row.what != "floor"], []
    for row in measures:
        if row.figure == "time_s" and (floor := find(rows, "floor", "time_s", recipients=row.of.get("recipients", 1))):
            multiple = over(row, floor)
            assert multiple is not None, "both are there"
            beside += [replace(floor, what=row.what, of=row.of, figure="floor_s"), replace(multiple, figure="× floor")]
    return [*measures, *beside] if beside else list(rows)


def _name(row: Row) -> str:
    """Name a measure in one line: `send of one, 32 callers, events off`."""
    return ", ".join([row.what, *(_variant(key, value) for key, value in row.of.items())])


def _variant(key: str, value: int | str) -> str:
    if isinstance(value, str):
        return f"{key} {value}"
    return f"{value:,} {key.removesuffix('s') if value == 1 else key}"


def spread(row: Row) -> str:
    """Write a row's values as their median with the least and the greatest."""
    median, least, greatest = (shown(row.figure, value) for value in (row.median, min(row.values), max(row.values)))
    return median if len(row.values) == 1 else f"{median} ({least} – {greatest})"


def shown(figure: str, value: float) -> str:
    """Write a value of a figure; times, kept in seconds, are shown in milliseconds."""
    return number(1e3 * value if _is_time(figure) else value)


def heading(figure: str) -> str:
    """Write a figure's name with the unit that its values are shown in."""
    name = figure.removesuffix("_s") + "_ms" if _is_time(figure) else figure
    return name.replace("_per_s", " per s").replace("_ms", ", ms").replace("_bytes", ", bytes")


def _is_time(figure: str) -> bool:
    return figure.endswith("_s") and not figure.endswith("_per_s")


def number(value: float) -> str:
    """Write a number with the three digits that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value == 0 or abs(value) >= 1e-3 else f"{value:.1e}"
