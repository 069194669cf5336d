"""What operators are told: by commands, and by what alarms look at."""

import json
import sys
import time
from inspect import unwrap
from pathlib import Path
from typing import Any

import click
import pytest
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.cli import main, status
from app.cli.answer import Answer
from app.cli.audit import audit
from app.cli.keys import keys
from app.cli.organizations import organizations
from app.messaging import last_runs, process_redis
from app.metrics import state
from app.postgres.database import transaction
from app.settings import settings
from tests.integration import books


def _answer(group: click.Group, name: str, *arguments: Any) -> Answer:
    """Give a command, and return what it answers."""
    command = group.commands[name]
    assert command.callback is not None
    answer: Answer = unwrap(command.callback)(*arguments)
    return answer


@pytest.mark.usefixtures("database")
def test_a_key_is_said_to_be_live_or_development_as_it_is_made_and_where_it_is_listed() -> None:
    organization_id = books.make_organization()
    for development, mode in ((False, "live"), (True, "development")):
        made = _answer(keys, "create", organization_id, development, None)
        assert made._sentence is not None
        assert made._sentence.startswith("pts_dev_" if development else "pts_live_")
        assert f"This is {mode} key " in made._sentence
    listed: Any = _answer(keys, "list", organization_id)._document
    assert [(key["mode"], key["start"][:8]) for key in listed] == [("live", "pts_live"), ("development", "pts_dev_")]


@pytest.mark.usefixtures("database")
def test_a_refill_says_which_of_the_balances_it_has_raised() -> None:
    organization_id = books.make_organization(100, sandbox_balance=7)
    for sandbox, words in ((False, "the live balance is 105."), (True, "the sandbox balance is 12.")):
        assert (
            _answer(organizations, "refill", organization_id, 5, sandbox, None)._sentence
            == f"Refilled 5 points; {words}"
        )


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
@pytest.mark.parametrize(
    ("commands", "state"),
    [
        ([], "may issue"),
        (["disable"], "disabled"),
        (["suspend"], "suspended"),
        (["disable", "suspend"], "disabled, suspended"),
    ],
)
def test_a_person_reads_what_keeps_an_organization_from_issuing(
    capsys: pytest.CaptureFixture[str], commands: list[str], state: str
) -> None:
    organization_id = books.make_organization()
    for command in commands:
        _answer(organizations, command, organization_id)
    _answer(organizations, "show", organization_id).print(as_json=False)
    assert f" {state} " in capsys.readouterr().out


@pytest.mark.usefixtures("database")
@pytest.mark.usefixtures("scratch")
def test_a_postgresql_without_tables_is_said_to_answer(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", server_url)
    settings.cache_clear()
    found = status._look_at_database()
    assert str(found.pop("database")).startswith("PostgreSQL ")
    unknown = {name for name in status._OF_DATABASE if name != "settings_missing"}
    assert found == {"database_error": None, "settings_missing": [], **dict.fromkeys(unknown)}


@pytest.mark.usefixtures("database", "broker")
def test_an_audit_that_finds_breaches_fails_and_notes_how_many_and_when() -> None:
    organization_id = books.make_organization(100)
    books.execute(f"UPDATE organizations SET balance = balance + 1 WHERE id = {organization_id}")
    expected = len(books.breaches())
    assert expected > 0
    assert audit.callback is not None
    answer = unwrap(audit.callback)()
    assert (answer.exit_status, answer._document["balanced"]) == (1, False)
    noted = last_runs.last_audit(process_redis.redis())
    assert noted is not None
    assert noted.breaches == expected
    assert abs(noted.ended_at - time.time()) < 60


@pytest.mark.usefixtures("database")
def test_the_queue_is_shown_by_its_length_and_by_its_age() -> None:
    organization_id = books.make_organization(100)
    for _ in range(2):
        books.queue_batch(organization_id, ["ann@example.com"], 1)
    books.execute("UPDATE batches SET created_at = now() - interval '90 s'")
    shown = {metric.name: metric.samples[0].value for metric in state.queue()}
    assert shown["points_queued_batches"] == 2
    assert 90 <= shown["points_oldest_queued_seconds"] < 120
    books.drain_all(organization_id)
    books.queue_reversal(organization_id, batch_id=1)
    books.execute("UPDATE reversals SET created_at = now() - interval '60 s'")
    shown = {metric.name: metric.samples[0].value for metric in state.queue()}
    assert (shown["points_queued_batches"], shown["points_queued_reversals"]) == (0, 1)
    assert 60 <= shown["points_oldest_queued_seconds"] < 90


@pytest.mark.usefixtures("database")
def test_a_look_at_the_queue_that_takes_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_COUNT_TIMEOUT_S", 0.1)
    with transaction() as holder:
        holder.exec_driver_sql("LOCK TABLE batches")
        began = time.monotonic()
        with pytest.raises(SQLAlchemyError):
            list(state.queue())
        assert time.monotonic() - began < 5  # A connection of ours waits for ten seconds.


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


def test_every_command_prints_one_json_document_and_nothing_else(command: Command, tmp_path: Path) -> None:
    number = books.make_organization(10)
    books.make_live_key(number)
    file = tmp_path / "users.csv"
    file.write_text("email,first_name,last_name\nada@example.com,Ada,Lovelace\n")
    for words in (
        *("organizations create Acme", "organizations list", f"organizations refill {number} 5"),
        *(f"organizations {verb} {number}" for verb in ("show", "disable", "enable", "suspend", "resume")),
        *(f"keys create {number}", f"keys list {number}", "keys revoke 1", f"users import {file}"),
        *("users show ada@example.com", "users create bob@example.com Bob Builder", "audit", "migrate"),
    ):
        status, out, err = command(*words.split(), "--json")
        assert (status, err) == (0, ""), words
        assert isinstance(json.loads(out), dict | list), words


# One more than PostgreSQL's bigint holds.
_HUGE = str(2**63)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("organizations", "show", "999999"), 1, "There is no organization 999999."),
        (("organizations", "refill", "999999", "5"), 1, "There is no organization 999999."),
        *((("organizations", verb, _HUGE), 1, f"There is no organization {_HUGE}.") for verb in ("show", "suspend")),
        (("organizations", "refill", _HUGE, "5"), 1, f"There is no organization {_HUGE}."),
        (("organizations", "create", "\udcff"), 1, "The name is not in UTF-8."),
        (("organizations", "refill", "1", "-5"), 1, "at least 1 point"),
        (("organizations", "create", " "), 1, "1 to 255 characters"),
        *((("keys", verb, "999999"), 1, "There is no organization 999999.") for verb in ("create", "list")),
        *((("keys", verb, _HUGE), 1, f"There is no organization {_HUGE}.") for verb in ("create", "list")),
        (("keys", "revoke", _HUGE), 1, f"There is no key {_HUGE}."),
        (("keys", "revoke", "999999"), 1, "There is no key 999999."),
        (("users", "show", "stranger@example.com"), 1, "There is no user"),
        (("users", "create", "nonsense", "A", "B"), 1, "points: EMAIL must be an e-mail address: it has no @-sign."),
        (("users", "create", "a@example.com", "\udcff", "B"), 1, "first_name is not in UTF-8."),
        (("organizations", "show", "one"), 2, "not a valid integer"),
        (("nonsense",), 2, "No such command"),
        (("organisation", "list"), 2, "Did you mean 'organizations'?"),
        (("keys", "revoek"), 2, "Did you mean 'revoke'?"),
        (("organizations", "refill", "1"), 2, "Missing argument"),
    ],
)
def test_an_error_is_one_sentence_on_standard_error(
    command: Command, arguments: tuple[str, ...], status: int, words: str
) -> None:
    books.make_organization()
    found, out, err = command(*arguments)
    assert (found, out) == (status, "")
    assert words in err
    assert "Traceback" not in err
