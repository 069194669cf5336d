"""What the bench shows: verdicts, tables, plots, and where they go."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks import compare, results, tables
from benchmarks.aims import AIMS
from benchmarks.options import Options
from benchmarks.publish import publish, put
from benchmarks.rows import Row
from benchmarks.svg import Bars

_FLOOR = Row(what="floor", of={"recipients": 10_000}, figure="time_s", values=[0.03, 0.04, 0.05])
_SEND = Row(what="whole send", of={"recipients": 10_000}, figure="time_s", values=[0.18, 0.16, 0.40])
_SECTIONS = {"send": [_FLOOR, _SEND]}


def _row(*values: float) -> Row:
    return Row(what="", of={}, figure="", values=values)


def test_an_aim_is_judged_by_the_median_of_the_rounds() -> None:
    aim = next(aim for aim in AIMS if aim.name.startswith("whole send, 10,000"))
    row = aim.of(_SECTIONS)
    assert row is not None
    assert row.median == pytest.approx(6)
    assert aim.verdict(row) == "first aim reached"
    assert aim.verdict(_row(5)) == "reached"
    assert aim.verdict(_row(9.1)) == "not reached"
    assert aim.verdict(aim.of({})) == "not measured"


def test_an_aim_that_another_run_may_well_miss_is_reached_within_the_noise() -> None:
    aim = next(aim for aim in AIMS if aim.name.startswith("whole send, 10,000"))
    assert aim.verdict(_row(4, 4, 5, 4, 4, 4, 4)) == "reached"
    assert aim.verdict(_row(4, 4, 5.1, 4, 4, 4, 4)) == "reached, within the noise"
    assert aim.verdict(_row(*[4] * 19, 90)) == "reached"  # One of twenty is an accident.


def test_an_aim_to_exceed_is_reached_from_above() -> None:
    aim = next(aim for aim in AIMS if not aim.at_most and aim.first < aim.final)
    assert aim.verdict(_row(aim.final)) == "reached"
    assert aim.verdict(_row(aim.first)) == "first aim reached"
    assert aim.verdict(_row(aim.first - 0.1)) == "not reached"


def test_every_aim_stands_in_the_table_measured_or_not() -> None:
    table = tables.of_aims(_SECTIONS)
    assert len(table.lines) == len(AIMS) == 13
    assert [line[-1] for line in table.lines].count("not measured") == 12


def test_a_section_is_shown_in_milliseconds_beside_its_floor() -> None:
    table = tables.of_section("send", _SECTIONS["send"])
    assert table.headings == ["", "time, ms", "floor, ms", "× floor"]
    assert table.lines == [["whole send, 10,000 recipients", "180 (160 – 400)", "40 (30 – 50)", "6 (4 – 8)"]]
    assert table.as_markdown().splitlines()[1] == "| --- | ---: | ---: | ---: |"


def test_two_checkouts_stand_side_by_side_with_the_median_of_their_rounds_ratios() -> None:
    name = "send of one, callers 1"

    def rows(figure: str, this: list[float], other: list[float]) -> list[Row]:
        sides = {"this": this, "other": other}
        return [Row(what=name, of={}, figure=f"{whose} {figure}", values=values) for whose, values in sides.items()]

    seen = rows("rate_per_s", [110, 60, 900], [100, 50, 1_000]) + rows("web cpu_ms", [1, 1, 1], [0, 0, 0])
    for figure in ("p50_s", "all parts cpu_ms", "worker1 cpu_ms", "postgresql cpu_ms"):
        seen += rows(figure, [2, 2, 2], [2, 2, 2])
    lines = compare.table(seen).lines
    assert lines[0] == ["send of one, callers 1", "rate per s", "100", "110", "× 1.100 (0.900 – 1.200)"]
    assert [line[:2] for line in lines[1:]] == [
        ["", "p50, ms"],
        ["", "all parts cpu, ms"],  # And none of web: nothing is a multiple of nothing.
        ["", "worker1 cpu, ms"],
        ["", "postgresql cpu, ms"],
    ]


def test_many_figures_of_few_measures_stand_below_each_other() -> None:
    rows = [
        Row(what="sends", of={}, figure=figure, values=[150.0])
        for figure in ("a_bytes", "b cpu_ms", "c_per_s", *"defghi")
    ]
    table = tables.of_section("cost", rows)
    assert table.headings == ["", "sends"]
    assert [line[0] for line in table.lines[:3]] == ["a, bytes", "b cpu, ms", "c per s"]


def test_a_plot_is_well_formed_and_escapes_its_words() -> None:
    bars = Bars(title="a < b & c", unit="ms", groups=["1", "8"], series=[("x", [_SEND, None]), ("y", [None, _FLOOR])])
    drawing = ET.fromstring(bars.as_svg())  # noqa: S314  # Our own.
    assert drawing.findtext("{http://www.w3.org/2000/svg}title") == "a < b & c"
    assert [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")][-2:] == ["0.04", "8"]


def test_a_plot_of_nothing_can_be_drawn() -> None:
    ET.fromstring(Bars(title="", unit="", groups=["1"], series=[("x", [None])]).as_svg())  # noqa: S314  # As above.


def test_a_section_measured_again_replaces_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    options = Options(rounds=3, seconds=1)
    results.put("floor", [_FLOOR], options, path=path)
    results.put("send", [_FLOOR], options, path=path)
    results.put("send", [_SEND], options, path=path)
    documents = results.read(path)
    assert results.rows_of(documents) == {"floor": [_FLOOR], "send": [_SEND]}
    assert documents["send"]["rounds"] == 3
    assert documents["send"]["commit"]


def test_a_table_goes_between_its_own_markers() -> None:
    page = "a\n<!-- bench: x -->\nold\n<!-- /bench -->\nb\n<!-- bench: y -->\nkept\n<!-- /bench -->\n"
    assert put(page, "x", "new\n") == page.replace("old", "new")
    assert put(page, "z", "new\n") == page


def test_publishing_writes_the_plots_and_the_pages(tmp_path: Path) -> None:
    results.put("send", _SECTIONS["send"], Options(rounds=3, seconds=1), path=tmp_path / "results.json")
    aims, results_page, readme = (
        tmp_path / name for name in ("docs/performance.md", "benchmarks/RESULTS.md", "README.md")
    )
    for page, marker in ((aims, "aims"), (results_page, "send"), (readme, "plot")):
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"before\n<!-- bench: {marker} -->\n<!-- /bench -->\nafter\n")
    publish(results.read(tmp_path / "results.json"), _SECTIONS, root=tmp_path)
    assert "| whole send, 10,000 recipients, against the floor | 6 (4 – 8)× |" in aims.read_text()
    assert "| whole send, 10,000 recipients | 180 (160 – 400) | 40 (30 – 50) | 6 (4 – 8) |" in results_page.read_text()
    assert "](../docs/plots/beside-the-floor.svg)" in results_page.read_text()
    assert "](docs/plots/busy.svg)" in readme.read_text()
    docs = tmp_path / "docs"
    assert sorted(plot.stem for plot in (docs / "plots").iterdir()) == ["beside-the-floor", "busy", "growth"]
