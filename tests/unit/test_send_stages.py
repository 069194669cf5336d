"""The stages of `points send`: what stops a run before anything is sent, what it writes down, and what it reports."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from rich.console import Console

from app.cli.send import send, stages
from app.cli.send.column import Column
from app.cli.send.earlier import Earlier, Intent
from app.cli.send.recipients import Part, Recipients
from app.cli.send.report import report
from app.cli.send.results import ResultFile
from app.cli.send.run import Choices, Run, prepared
from app.cli.send.service import GaveUp, Issued, Service, Unanswered
from app.errors import PointsError, Refused

_AMOUNT = 10
_EMAILS = ("ann@example.com", "bob@example.com", "cy@example.com", "dee@example.com")


_INTENT = Intent(campaign="c" * 64, amount=_AMOUNT, label=None, sandbox=False, organization_id=7)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a file of recipients."""
    path = tmp_path / "people.csv"
    path.write_text("".join(f"{email}\n" for email in _EMAILS))
    return path


def _choices(path: Path, **others: Any) -> Choices:
    chosen = {"key": "pts_live_key", "url": "http://127.0.0.1:1", "patience": 1.0, "yes": True, "as_json": True}
    without: dict[str, Any] = dict.fromkeys(("label", "column", "again", "result")) | {"atomic": False}
    return Choices(file=path, amount=_AMOUNT, **without | chosen | others)


class _Batches:
    """A service that issues a batch for each send, in which each recipient becomes what `fate` says."""

    def __init__(self, fate: Callable[[str], Mapping[str, bool]]) -> None:
        self._fate = fate

    def send(self, body: Mapping[str, Any], _idempotency_key: str) -> Issued:
        of_each = {"amount": _AMOUNT, "label": None, "sandbox": False, "organization": {"id": 7}}
        transactions = [
            {"id": place, "email": email, "created_at": f"{datetime.now(UTC)}", **of_each, **self._fate(email)}
            for place, email in enumerate(body["recipients"])
        ]
        return Issued(batch_id=1, transactions=transactions, current_balance=0, replayed=False)


@contextmanager
def _run(choices: Choices, *, service: object = None, balance: int = 100, settled: int = 0) -> Iterator[Run]:
    """Give a run that sends a batch for each recipient."""
    with closing(Recipients()) as recipients, ResultFile(choices.result_path) as results:
        for line, email in enumerate(_EMAILS, 1):
            recipients.add(line, email)
        yield Run(
            choices=choices,
            recipients=recipients,
            column=Column(place=0, heading="column 1", has_heading=False),
            service=cast(Service, service),
            results=results,
            organization={"id": 7, "name": "Acme", "balance": balance},
            intent=_INTENT,
            earlier=Earlier(settled=settled),
            out=Console(file=io.StringIO()),
            err=Console(file=io.StringIO()),
            size=1,
        )


@pytest.mark.parametrize(
    ("balance", "settled", "is_paid"), [(40, 0, True), (39, 0, False), (10, 3, True), (9, 3, False)]
)
def test_with_atomic_nothing_is_sent_unless_the_balance_pays_all_that_no_earlier_run_has(
    path: Path, balance: int, settled: int, is_paid: bool
) -> None:
    with _run(_choices(path, atomic=True), balance=balance, settled=settled) as run:
        if is_paid:
            stages.ask(run)
        else:
            with pytest.raises(Refused, match="the balance does not pay all of it"):
                stages.ask(run)


def test_a_report_tells_those_credited_from_those_held_and_those_whom_the_balance_did_not_pay(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fates = {
        "ann@example.com": {"debited": True, "credited": True},
        "bob@example.com": {"debited": True, "credited": False},
        "cy@example.com": {"debited": True, "credited": False},
        "dee@example.com": {"debited": False, "credited": False},
    }
    with _run(_choices(path), service=_Batches(fates.__getitem__)) as run:
        stages.send(run)
        assert report(run) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["debited"], found["credited"], found["held"], found["not_debited"]) == (3, 1, 2, 1)
    assert (found["points"], found["batches"]) == (3 * _AMOUNT, 4)


def test_of_a_batch_that_was_refused_it_is_known_that_it_is_not_sent(path: Path) -> None:
    def refuse_bob(email: str) -> Mapping[str, bool]:
        if email == "bob@example.com":
            raise Refused("The organization is suspended.")
        return {"debited": True, "credited": False}

    with _run(_choices(path), service=_Batches(refuse_bob)) as run:
        stages.send(run)
        assert run.stopped == "The organization is suspended."
        with run.results.path.open(newline="") as file:
            assert [row["reason"] for row in csv.DictReader(file)] == ["", *["not sent yet"] * 3]


@pytest.mark.parametrize("error", [GaveUp, Unanswered])
def test_of_a_batch_that_may_have_been_accepted_it_is_never_said_that_it_is_not_sent(
    path: Path, capsys: pytest.CaptureFixture[str], error: type[PointsError]
) -> None:
    def lose_bob(email: str) -> Mapping[str, bool]:
        if email == "bob@example.com":
            raise error("The key was revoked.")
        return {"debited": True, "credited": False}

    with _run(_choices(path), service=_Batches(lose_bob)) as run:
        stages.send(run)
        assert run.stopped is not None
        assert {GaveUp: "Give the same command again", Unanswered: "its lines say “sent, but not answered”"}[
            error
        ] in run.stopped
        with run.results.path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["reason"] for row in rows] == ["", "sent, but not answered", *["not sent yet"] * 2]
        assert report(run) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["sent"], found["unanswered"]) == (1, 1)


@pytest.mark.parametrize("spelling", ["people.csv", "./people.csv", "folder/../people.csv", "link.csv"])
def test_the_result_never_replaces_the_file_itself_however_it_is_called(
    path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    monkeypatch.chdir(path.parent)
    Path("folder").mkdir()
    Path("link.csv").symlink_to(path)
    with (
        pytest.raises(Refused, match="would replace the file itself"),
        prepared(_choices(path, result=Path(spelling))),
    ):
        pass


def test_whom_a_killed_run_has_paid_is_not_paid_once_more_because_the_file_has_changed_since(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Service, "organization", lambda _: {"id": 7, "name": "Acme", "balance": 100})
    choices, paid = _choices(path), _EMAILS[:2]
    issued = _Batches(lambda _: {"debited": True, "credited": False}).send({"recipients": paid}, "")
    with ResultFile(choices.result_path) as killed:
        killed.begin([])
        killed.write(Part(number=1, lines=[1, 2], emails=paid), issued, _INTENT)
    with pytest.raises(Refused, match="2 of its recipients were paid then"), prepared(choices):
        pass


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_a_new_campaign_needs_a_name_that_is_more_than_blanks(path: Path, name: str) -> None:
    done = CliRunner().invoke(send, [str(path), "--amount", "1", "--key", "k", "--again", name])
    assert (done.exit_code, "the new campaign needs a name" in done.stderr) == (2, True)


def test_unless_a_person_says_otherwise_a_service_may_be_away_for_minutes() -> None:
    [patience] = [option for option in send.params if option.name == "patience"]
    assert isinstance(patience.default, float)
    assert patience.default >= 120
