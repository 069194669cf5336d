"""The aims: the figures that speed is judged by, how each follows from measured rows, and its target values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.rows import Row, combined, divided, find, median_interval

Sections = Mapping[str, Sequence[Row]]

# How certain it must be that the true median reaches an aim.
_CERTAINTY = 0.9


@dataclass(frozen=True, kw_only=True)
class Aim:
    """A figure with its first and final aim; `of` makes the figure of the sections (None: not measured)."""

    name: str
    of: Callable[[Sections], Row | None]
    first: float
    final: float
    at_most: bool
    unit: str = "×"

    def reached(self, value: float, aim: float) -> bool:
        """Tell whether a value is on the right side of an aim."""
        return value <= aim if self.at_most else value >= aim

    def verdict(self, row: Row | None) -> str:
        """Return which aim the median has reached, and whether that may be noise."""
        if row is None:
            return "not measured"
        for aim, words in ((self.final, "reached"), (self.first, "first aim reached")):
            if self.reached(row.median, aim):
                is_sure = all(self.reached(value, aim) for value in median_interval(row.values, certainty=_CERTAINTY))
                return words if is_sure else f"{words}, within the noise"
        return "not reached"


def _beside_floor(section: str, what: str, **of: int | str) -> Callable[[Sections], Row | None]:
    def of_sections(sections: Sections) -> Row | None:
        rows = sections.get(section, ())
        return divided(
            find(rows, what, "time_s", recipients=10_000, **of), find(rows, "floor", "time_s", recipients=10_000)
        )

    return of_sections


def _items_beside_send(sections: Sections) -> Row | None:
    rows = sections.get("send", ())
    return divided(*(find(rows, what, "time_s", recipients=10_000) for what in ("send of items", "whole send")))


def _rival_time(sections: Sections) -> Row | None:
    rows = sections.get("rival", ())
    times = [find(rows, f"{who}, whole send", "time_s", recipients=10_000) for who in ("rival", "ours")]
    return divided(*times)


def _rival_rate(sections: Sections) -> Row | None:
    rows = sections.get("rival", ())
    return divided(*(find(rows, f"{who}, send of one", "rate_per_s", callers=32) for who in ("ours", "rival")))


def _busy(sections: Sections, figure: str, callers: int, what: str = "send of one") -> Row | None:
    return find(sections.get("busy", ()), what, figure, callers=callers, events="off")


def _busy_beside_view(sections: Sections) -> Row | None:
    share = divided(_busy(sections, "rate_per_s", 32), _busy(sections, "rate_per_s", 32, "/healthz"))
    return combined(lambda value: 100 * value, share)


def _busy_never_lower(sections: Sections) -> Row | None:
    most = _busy(sections, "rate_per_s", 32)
    return combined(
        min, divided(most, _busy(sections, "rate_per_s", 8)), divided(most, _busy(sections, "rate_per_s", 1))
    )


def _busy_tail(sections: Sections) -> Row | None:
    return divided(_busy(sections, "p99_s", 32), _busy(sections, "p50_s", 32))


def _idle(sections: Sections) -> Row | None:
    """Compare with the faster of the two round trips."""
    rows = sections.get("idle", ())
    tasks = [find(rows, f"empty task, {way}", "p50_s") for way in ("list", "result")]
    return divided(find(rows, "send of one", "p50_s"), combined(min, *tasks))


def _small(sections: Sections) -> Row | None:
    rows = sections.get("several", ())
    return divided(*(find(rows, f"small organization, {how}", "p99_s") for how in ("beside 10,000", "alone")))


def _two(sections: Sections) -> Row | None:
    rows = sections.get("several", ())
    return divided(*(find(rows, "busy at once", "rate_per_s", organizations=count, callers=8) for count in (2, 1)))


def _disk(sections: Sections) -> Row | None:
    rows = sections.get("cost", ())
    large = (row for row in rows if row.of["recipients"] == 10_000)
    return next((row for row in large if row.figure == "transaction with indexes, on disk_bytes"), None)


def _growth(sections: Sections) -> Row | None:
    rows = sections.get("growth", ())
    slower = divided(*(find(rows, "worker body", "time_s", millions=millions) for millions in (10, 0)))
    return combined(lambda value: 100 * (value - 1), slower)


AIMS = (
    Aim(
        name="worker body, 10,000 recipients with accounts, against the floor",
        of=_beside_floor("body", "worker body", accounts="all"),
        first=5,
        final=2.5,
        at_most=True,
    ),
    Aim(
        name="whole send, 10,000 recipients, against the floor",
        of=_beside_floor("send", "whole send"),
        first=9,
        final=5,
        at_most=True,
    ),
    Aim(
        name="10,000 items with amounts and references of their own, against the whole send",
        of=_items_beside_send,
        first=1.35,
        final=1.35,
        at_most=True,
    ),
    Aim(name="whole send of 10,000, faster than the rival", of=_rival_time, first=10, final=25, at_most=False),
    Aim(
        name="one busy organization, 32 callers, of the rate of an empty view",
        of=_busy_beside_view,
        first=35,
        final=60,
        at_most=False,
        unit="%",
    ),
    Aim(name="the same, against the rival's rate", of=_rival_rate, first=2, final=3, at_most=False),
    Aim(name="the same, against 8 callers and 1, the worse", of=_busy_never_lower, first=1, final=1, at_most=False),
    Aim(name="the same, p99 against p50", of=_busy_tail, first=4, final=4, at_most=True),
    Aim(name="idle send of one, p50, against an empty task", of=_idle, first=4, final=2, at_most=True),
    Aim(name="a small organization's p99 beside 10,000, against alone", of=_small, first=8, final=3, at_most=True),
    Aim(name="two organizations, 8 callers each, against one", of=_two, first=1.6, final=1.8, at_most=False),
    Aim(name="disk per transaction, with indexes", of=_disk, first=250, final=180, at_most=True, unit=" B"),
    Aim(name="10 million stored, slower than empty", of=_growth, first=10, final=3, at_most=True, unit=" %"),
)
