"""What operators are told: by commands, and by what alarms look at."""

import sys
from pathlib import Path
from typing import Any

import click
import pytest
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.cli import main
from app.cli.answer import Answer
from app.cli.organizations import organizations
from app.metrics import page
from app.postgres.database import transaction
from tests.integration import books


def _answer(group: click.Group, name: str, *arguments: Any) -> Answer:
    """Give a command, and return what it answers."""
    command = group.commands[name]
    assert command.callback is not None
    answer: Answer = vars(command.callback)["__wrapped__"](*arguments)
    return answer


@pytest.mark.usefixtures("database")
def test_a_refill_that_cannot_be_shown_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told that it failed, whoever has given the command gives it again."""

    def gone(*_arguments: object, **_named: object) -> None:
        raise DBAPIError("SELECT", {}, Exception("gone"))

    organization_id = books.make_organization(100)
    with monkeypatch.context() as patch:
        patch.setattr("app.organizations.get_whole", gone)
        with pytest.raises(DBAPIError):
            _answer(organizations, "refill", organization_id, 5, False, None)
    assert books.balance_of(organization_id) == 100


@pytest.mark.usefixtures("database")
def test_the_queue_is_shown_by_its_length_and_by_its_age() -> None:
    organization_id = books.make_organization(100)
    for _ in range(2):
        books.queue_batch(organization_id, ["ann@example.com"], 1)
    books.execute("UPDATE batches SET created_at = now() - interval '90 s'")
    shown = {metric.name: metric.samples[0].value for metric in page.queue()}
    assert shown["points_queued_batches"] == 2
    assert 90 <= shown["points_oldest_queued_seconds"] < 120
    books.drain_all(organization_id)
    books.queue_reversal(organization_id, batch_id=1)
    books.execute("UPDATE reversals SET created_at = now() - interval '60 s'")
    shown = {metric.name: metric.samples[0].value for metric in page.queue()}
    assert (shown["points_queued_batches"], shown["points_queued_reversals"]) == (0, 1)
    assert 60 <= shown["points_oldest_queued_seconds"] < 90


@pytest.mark.usefixtures("database")
def test_a_look_at_the_queue_that_takes_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_COUNT_TIMEOUT_S", 0.1)
    with transaction() as holder:
        holder.exec_driver_sql("LOCK TABLE batches")
        with pytest.raises(SQLAlchemyError, match="statement timeout"):  # And not that of locks, which is long.
            list(page.queue())


class Command:
    """Gives commands in this process, as the program does, and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Give a command; return its exit status and what stands on standard output and on standard error."""
        self._monkeypatch.setattr(sys, "argv", ["points", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = self._capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, broker: None, database: None
) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(capsys, monkeypatch)


# One more than PostgreSQL's bigint holds.
_HUGE = str(2**63)

_WRONG: list[tuple[tuple[str, ...], int, str]] = [
    *(((*words.split(), number), 1, f"There is no {noun} {number}.")
      for words, noun in (("organizations show", "organization"), ("organizations suspend", "organization"),
                          ("keys create", "organization"), ("keys revoke", "key"))
      for number in ("999999", _HUGE)),
    (("organizations", "refill", _HUGE, "5"), 1, f"There is no organization {_HUGE}."),
    (("organizations", "refill", "1", "-5"), 1, "needs a reference"),
    (("organizations", "create", "\udcff"), 1, "The name is not in UTF-8."),
    (("users", "show", "stranger@example.com"), 1, "There is no user"),
    (("users", "create", "nonsense", "A", "B"), 1, "points: EMAIL must be an e-mail address: it has no @-sign."),
    (("organizations", "show", "one"), 2, "not a valid integer"),
    (("organisation", "list"), 2, "Did you mean 'organizations'?"),
    (("keys", "revoek"), 2, "Did you mean 'revoke'?"),
    (("organizations", "refill", "1"), 2, "Missing argument"),
]  # fmt: skip


def test_an_error_is_one_sentence_on_standard_error(command: Command) -> None:
    books.make_organization()
    for arguments, status, words in _WRONG:
        found, out, err = command(*arguments)
        assert (found, out) == (status, ""), arguments
        assert words in err, arguments
        assert "Traceback" not in err, arguments
