"""Drawing grouped bars as SVG that is readable as text, and on light and dark pages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.rows import Row
from benchmarks.tables import number

_WIDTH, _HEIGHT = 760, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 84, 44
# Distinct for colour-blind readers too, and by lightness in print.
_COLORS = ("#1b6ca8", "#e08e0b", "#2e8b57", "#8e5ea2", "#7f7f7f", "#c23b22")
_TICKS = 5


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Grouped bars, a bar a series in each group: its height is the median, its line goes from least to greatest."""

    title: str
    unit: str
    groups: Sequence[str]
    series: Sequence[tuple[str, Sequence[Row | None]]]

    def as_svg(self) -> str:
        """Return the SVG."""
        rows = [row for _, in_groups in self.series for row in in_groups if row is not None]
        top = _round_up(max((max(row.values) for row in rows), default=1.0))
        parts = [*self._frame(top), *self._legend()]
        group_width = (_WIDTH - _LEFT - _RIGHT) / len(self.groups)
        bar_width = min(60.0, group_width * 0.84 / len(self.series))
        for group in range(len(self.groups)):
            left = _LEFT + group_width * (group + 0.5) - bar_width * len(self.series) / 2
            for place, (_, in_groups) in enumerate(self.series):
                if (row := in_groups[group]) is not None:
                    parts += _bar(left + place * bar_width, bar_width, row, top, _COLORS[place % len(_COLORS)])
            parts.append(_text(_LEFT + group_width * (group + 0.5), _HEIGHT - 18, self.groups[group]))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
            f' font-family="system-ui, sans-serif" font-size="12" fill="#222">\n<title>{escape(self.title)}</title>\n'
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
        )

    def _frame(self, top: float) -> list[str]:
        parts = [
            f'<text x="{_LEFT}" y="24" font-size="16" font-weight="600">{escape(self.title)}</text>',
            f'<text x="{_LEFT}" y="{_TOP - 12}" fill="#555">{escape(self.unit)}</text>',
        ]
        for tick in range(_TICKS + 1):
            value = top * tick / _TICKS
            y = _y(value, top)
            parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{"#999" if tick == 0 else "#ddd"}"/>')
            parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{number(value)}</text>')
        return parts

    def _legend(self) -> list[str]:
        parts, x = [], float(_LEFT)
        for place, (name, _) in enumerate(self.series):
            color = _COLORS[place % len(_COLORS)]
            parts.append(f'<rect x="{x:.0f}" y="38" width="12" height="12" fill="{color}"/>')
            parts.append(f'<text x="{x + 17:.0f}" y="48">{escape(name)}</text>')
            x += 34 + 6.3 * len(name)
        return parts


def _bar(x: float, width: float, row: Row, top: float, color: str) -> list[str]:
    y, middle = _y(row.median, top), x + width / 2
    least, greatest = _y(min(row.values), top), _y(max(row.values), top)
    height = _y(0, top) - y
    return [
        f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{width - 2:.1f}" height="{height:.1f}" fill="{color}"/>',
        f'<path d="M{middle:.1f} {least:.1f}V{greatest:.1f}" stroke="#222"/>',
        _text(middle, greatest - 5, number(row.median), size=11),
    ]


def _text(x: float, y: float, words: str, *, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle">{escape(words)}</text>'


def _y(value: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / top


def _round_up(value: float) -> float:
    """Return the next greater number that divides well into ticks."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(factor * power for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10) if value <= factor * power * (1 + 1e-9))
