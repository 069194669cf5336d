"""Tables of figures, for the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row


def show(section: str, rows: Sequence[Row]) -> None:
    """Print the figures of a section: a line a measure, a column a figure, as median (minimum – maximum)."""
    figures = list(dict.fromkeys(row.figure for row in rows))
    table = Table(title=section, title_justify="left")
    table.add_column("what")
    for figure in figures:
        table.add_column(heading(figure), justify="right")
    lines: dict[str, dict[str, str]] = {}
    for row in rows:
        name = ", ".join([row.what, *(f"{value} {key}" for key, value in row.of.items())])
        lines.setdefault(name, {})[row.figure] = spread(row)
    for name, cells in lines.items():
        table.add_row(name, *(cells.get(figure, "") for figure in figures))
    Console(width=200).print(table)


def spread(row: Row) -> str:
    """Write a row's values as their median with the least and the greatest."""
    factor = 1e3 if _is_time(row.figure) else 1
    median, least, greatest = (number(factor * value) for value in (row.median, min(row.values), max(row.values)))
    return median if len(row.values) == 1 else f"{median} ({least} – {greatest})"


def heading(figure: str) -> str:
    """Write a figure's name with its unit; times, kept in seconds, are shown in milliseconds."""
    name = figure.removesuffix("_s") + "_ms" if _is_time(figure) else figure
    return name.replace("_per_s", " per s").replace("_ms", " ms").replace("_bytes", " bytes")


def _is_time(figure: str) -> bool:
    return figure.endswith("_s") and not figure.endswith("_per_s")


def number(value: float) -> str:
    """Write a number with three digits that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
