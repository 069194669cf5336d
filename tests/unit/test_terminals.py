"""A person's terminal: tables, lines as they come, and interrupts."""

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


def test_a_pipe_gets_a_row_a_line_however_wide_without_colour_or_control(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "20")
    print_table(_ROWS, _COLUMNS)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "   ID  Name                       Balance  On   Created",
        "12345  [bold]Acme[/bold]        1,234,567  yes  –",
        "   20  Globex of the long name          5  no   2026-01-31 09:30Z",
    ]


def test_what_a_terminal_would_obey_is_shown_and_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"name": "a\nb\x1b[31m\x9b31m\tc"}], {"Name": "name"})
    assert capsys.readouterr().out.splitlines()[1].rstrip() == r"a\x0ab\x1b[31m\x9b31m\x09c"
