"""The statistics of the bench: percentiles, turns, and figures put together round by round."""

import math
from collections.abc import Callable

import pytest

from benchmarks.options import NotMeasured
from benchmarks.rows import Row, combined, divided, find, median_interval, named, percentile, repeated, take_turns
from benchmarks.scale import beside_first, sizes_up_to


def row(*values: float, what: str = "send", figure: str = "time_s") -> Row:
    return Row(what=what, of={"recipients": 1}, figure=figure, values=values)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.5, 50), (0.99, 99), (0.991, 100), (1.0, 100)])
def test_a_percentile_is_the_smallest_value_that_the_share_does_not_exceed(share: float, expected: float) -> None:
    assert percentile(list(range(1, 101)), share) == expected


def test_a_percentile_of_few_values_is_one_of_them() -> None:
    assert [percentile([], 0.5), percentile([7], 0.99), percentile([1, 2], 0.5), percentile([1, 2], 0.99)] == [
        0,
        7,
        1,
        2,
    ]


def test_measures_take_turns_and_the_first_round_is_not_counted() -> None:
    order: list[str] = []

    def measurement(name: str) -> Callable[[], dict[str, float]]:
        def measure() -> dict[str, float]:
            order.append(name)
            return {"time_s": float(len(order))}

        return measure

    measures = {named("floor"): measurement("floor"), named("send", recipients=1): measurement("send")}
    rests: list[int] = []
    rows = take_turns(measures, rounds=2, wait_idle=lambda: rests.append(len(order)))
    assert order == ["floor", "send"] * 3
    assert rests == [1, 2, 3, 4, 5, 6]
    assert rows == [
        Row(what="floor", of={}, figure="time_s", values=[3, 5]),
        Row(what="send", of={"recipients": 1}, figure="time_s", values=[4, 6]),
    ]


def test_a_repeated_look_gives_the_median_of_each_figure() -> None:
    values = iter([(1, 10), (9, 30), (2, 20)])
    assert repeated(lambda: dict(zip(("a", "b"), next(values), strict=True)), times=3)() == {"a": 2, "b": 20}


def test_a_ratio_compares_what_stood_side_by_side() -> None:
    ratio = divided(row(2, 30, 8), row(1, 10, 2))
    assert ratio is not None
    assert list(ratio.values) == [2, 3, 4]
    assert ratio.median == 3


def test_a_ratio_over_nothing_is_infinite_and_one_of_nothing_is_missing() -> None:
    assert divided(row(1), None) is None
    assert combined(min, None, row(1)) is None
    infinite = divided(row(1), row(0))
    assert infinite is not None
    assert infinite.median == math.inf


def test_a_row_is_found_by_all_that_names_it() -> None:
    rows = [row(1), row(2, figure="p50_s")]
    assert find(rows, "send", "p50_s", recipients=1) == rows[1]
    assert find(rows, "send", "p50_s", recipients=10) is None
    assert find(rows, "send", "p50_s") is None


# The innermost ranks of a sign test: of 8 values the median lies below the second or above the seventh in 7 % of cases.
@pytest.mark.parametrize(
    ("count", "least", "greatest"),
    [(1, 1, 1), (4, 1, 4), (5, 1, 5), (7, 1, 7), (8, 2, 7), (10, 2, 9), (11, 3, 9), (15, 4, 12), (20, 6, 15)],
)
def test_a_median_lies_between_the_innermost_certain_values(count: int, least: int, greatest: int) -> None:
    assert median_interval(range(count, 0, -1), certainty=0.9) == (least, greatest)


def test_more_certainty_leaves_fewer_values_out() -> None:
    assert [median_interval(range(1, 21), certainty=certainty) for certainty in (0.5, 0.95, 0.99)] == [
        (8, 13),
        (6, 15),
        (4, 17),
    ]


def test_a_figure_at_each_size_is_told_as_times_that_of_the_first() -> None:
    def at(size: int, *values: float) -> Row:
        return Row(what="send of 1", of={"rows": size}, figure="time_s", values=values)

    seen = beside_first([at(1_000, 2, 4, 6), at(10_000, 4, 8)], first=1_000)
    assert [(one.of["rows"], one.figure, list(one.values)) for one in seen] == [
        (1_000, "time_s", [2, 4, 6]),
        (1_000, "× 1,000 rows", [0.5, 1, 1.5]),
        (10_000, "time_s", [4, 8]),
        (10_000, "× 1,000 rows", [1, 2]),
    ]


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        (20_000, [20_000]),
        (1_000_000, [1_000_000]),
        (3_000_000, [1_000_000, 3_000_000]),
        (100_000_000, [1_000_000, 10_000_000, 100_000_000]),
    ],
)
def test_the_books_are_measured_at_each_size_up_to_the_last(rows: int, sizes: list[int]) -> None:
    assert sizes_up_to(rows) == sizes


@pytest.mark.parametrize("rows", [0, 10_000, 30_000, 1_020_000])
def test_books_that_no_step_ends_at_are_refused(rows: int) -> None:
    with pytest.raises(NotMeasured, match=rf"a multiple of 20,000 up to 1,000,000, or of 1,000,000, not {rows:,}\."):
        sizes_up_to(rows)
