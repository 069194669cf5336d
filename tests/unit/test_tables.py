"""The tables of the commands: readable at any width, and plain where nobody looks."""

from datetime import datetime, timedelta, timezone

import pytest

from app.cli.tables import print_table

_COLUMNS = {"ID": "id", "Name": "name", "Balance": "balance", "On": "on", "Created": "created_at"}
_ROWS = [
    {"id": 12_345, "name": "[bold]Acme[/bold]", "balance": 1_234_567, "on": True, "created_at": None},
    {
        "id": 20,
        "name": "Globex of the long name",
        "balance": 5,
        "on": False,
        # As a connection of another time zone answers it.
        "created_at": datetime(2026, 1, 31, 18, 30, tzinfo=timezone(timedelta(hours=9))),
    },
]


def _printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_table(_ROWS, _COLUMNS)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def test_a_pipe_gets_a_row_a_line_however_wide_without_colour_or_control(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert _printed(capsys) == [
        "   ID  Name                       Balance  On   Created",
        "12345  [bold]Acme[/bold]        1 234 567  yes  –",
        "   20  Globex of the long name          5  no   2026-01-31 09:30Z",
    ]


def test_what_a_terminal_would_obey_is_shown_and_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"name": "a\nb\x1b[31m\x9b31m\tc"}], {"Name": "name"})
    assert capsys.readouterr().out.splitlines()[1].rstrip() == r"a\x0ab\x1b[31m\x9b31m\x09c"


@pytest.mark.parametrize(("width", "lines"), [("65", 3), ("64", 11), ("30", 12)])
def test_a_terminal_too_narrow_for_the_table_gets_a_block_for_each_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: str, lines: int
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", width)
    printed = _printed(capsys)
    assert len(printed) == lines
    assert not any("\x1b[3" in line for line in printed), "no colour where NO_COLOR is set"
    assert "…" not in "".join(printed), "nothing is cut off"
