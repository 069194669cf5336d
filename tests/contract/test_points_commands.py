"""points send without --amount, and points reverse: paid once, taken back once, each line named."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.contract.calls import Key, Organization, address, addresses, nothing_changes, organization
from tests.contract.reversing import send
from tests.service.up import Service


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.csv"


def _arguments(path: Path, key: Key, *more: str) -> list[str]:
    return ["send", str(path), "--key", key.text, "--url", key.service.url, "--yes", "--json", *more]


def _send(path: Path, key: Key, *more: str, status: int = 0) -> Any:
    done = key.service.run(*_arguments(path, key, *more))
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)


def _refusal(path: Path, key: Key, *more: str, status: int = 1) -> str:
    with nothing_changes(key):
        done = key.service.run(*_arguments(path, key, *more))
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    return done.stderr


def _results(path: Path) -> list[dict[str, str]]:
    with path.with_name(f"{path.stem}.result.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, *rows: Sequence[object]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def _issued(key: Key, outcome: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the transactions of the batch that a run has sent."""
    [batch_id] = {
        int(row["batch_id"]) for row in _results(Path(outcome["result"].replace(".result", ""))) if row["batch_id"]
    }
    transactions: list[dict[str, Any]] = key.batch(batch_id)["transactions"]
    return transactions


_FORMS = {
    "as Excel saves Unicode text": ("\t", "\r\n", "utf-16"),
    "as Excel saves CSV UTF-8 in Germany": (";", "\r\n", "utf-8-sig"),
    "as Excel saves CSV in Germany": (";", "\r\n", "cp1252"),
    "as a program writes it": (",", "\n", "utf-8"),
}


@pytest.mark.parametrize("form", _FORMS.values(), ids=_FORMS.keys())
def test_each_line_is_paid_its_amount_or_named(acme: Organization, path: Path, form: tuple[str, str, str]) -> None:
    delimiter, end, encoding = form
    ann, bob, before = address(), address(), acme.live.balance
    acme.service.register(ann)
    rows = [
        ["Name", "E-Mail", "Points", "Reference", "Label"],
        ["Müller", ann, "1000", "4711", "Frühling"],
        ["Thousands", address(), '"1,000"', "", ""],
        ["Thousands", address(), "1.000", "", ""],
        ["Thousands", address(), "1 000", "", ""],
        ["Decimals", address(), "10.0", "", ""],
        ["Blank", address(), "", "", ""],
        ["Above the limit", address(), "1000000001", "", ""],
        ["No address", "nonsense", "5", "", ""],
        ["Bob", f" {bob} ", " 7 ", "", ""],
        ["Again", ann.upper(), "5", "4712", ""],
        ["Again", ann, "5", "", ""],
        ["The same reference", address(), "5", "4711", ""],
        ["", "", "", "", ""],
    ]
    path.write_bytes("".join(delimiter.join(row) + end for row in rows).encode(encoding))
    outcome = _send(path, acme.live, "--label", "May", status=3)
    assert [line["line"] for line in outcome["bad_lines"]] == [3, 4, 5, 6, 7, 8, 9, 12, 13]
    assert acme.live.balance == before - 1_012
    told = [(one["email"], one["amount"], one["reference"], one["label"]) for one in _issued(acme.live, outcome)]
    assert told == [
        (ann, 1_000, "4711", "Frühling"),
        (bob, 7, None, "May"),
        (ann.upper(), 5, "4712", "May"),
    ]
    paid = [(row["line"], row["amount"], row["reference"], row["label"]) for row in _results(path) if row["debited"]]
    assert paid == [("2", "1000", "4711", "Frühling"), ("10", "7", "", "May"), ("11", "5", "4712", "May")]
    shown = acme.service.json("users", "show", ann)
    assert (shown["email"], shown["balance"]) == (ann, 1_005)

    again = _send(path, acme.live, "--label", "May", status=3)
    assert (again["replayed_batches"], again["points"]) == (1, 1_012)
    assert acme.live.balance == before - 1_012
    [found] = acme.live.listed("transactions", reference="4711", email=ann)
    assert found["amount"] == 1_000


def test_the_first_unaffordable_line_ends_the_paying_and_the_rest_is_paid_later(service: Service, path: Path) -> None:
    acme = organization(service, 12)
    emails = addresses(4)
    rows = list(zip(emails, (5, 6, 4, 1), ("a", "b", "", "=d"), strict=True))
    _write(path, ("email", "amount", "reference"), *rows)
    assert "the balance does not pay all of it" in _refusal(path, acme.live, "--atomic")
    first = _send(path, acme.live)
    assert (first["debited"], first["not_debited"], first["current_balance"]) == (2, 2, 1)
    assert [row["debited"] for row in _results(path)] == ["yes", "yes", "no", "no"]
    acme.refill(100)
    rest = _send(Path(first["undebited"]), acme.live)
    assert (rest["debited"], rest["points"], rest["current_balance"]) == (2, 5, 96)
    told = [(one["email"], one["amount"], one["reference"]) for one in _issued(acme.live, rest)]
    assert told == [(emails[2], 4, None), (emails[3], 1, "=d")]
    with acme.stopped():
        for again in (path, Path(first["undebited"])):
            assert _send(again, acme.live)["replayed_batches"] == 1
        assert "is suspended" in _refusal(path, acme.live, "--again", "once more")
    assert acme.live.balance == 96


def test_it_shows_what_would_come_back_asks_and_takes_it_once(service: Service, acme: Organization) -> None:
    batch_id, _ = send(acme.live, {"recipients": addresses(3), "amount": 20})
    before = acme.live.balance
    given = ("--reason", "the wrong list", "--key", acme.live.text, "--url", service.url)
    for answer in ("n\n", ""):
        refused = service.run("reverse", str(batch_id), *given, stdin=answer)
        assert refused.returncode == 1
        assert "60 points" in refused.stdout
        assert "Nothing was taken back" in refused.stderr
    assert acme.live.balance == before
    done = service.run("reverse", str(batch_id), *given, stdin="y\n")
    assert done.returncode == 0, done.stderr
    assert "60 points of 3 transactions" in done.stdout
    assert acme.live.balance == before + 60
    again = service.run("reverse", str(batch_id), *given, "--yes")
    assert (again.returncode, "Nothing is left" in again.stderr) == (1, True)
    assert acme.live.balance == before + 60


def test_it_finds_the_running_service_and_answers_programs(service: Service, acme: Organization) -> None:
    batch_id, _ = send(acme.live, {"recipient": address(), "amount": 7})
    given = ("--reason", "twice", "--key", acme.live.text, "--yes")
    result = service.json("reverse", str(batch_id), *given)
    assert (result["amount"], [one["reversed"] for one in result["transactions"]]) == (7, [7])
    for absent in ("999999999", str(2**63)):
        told = service.command("reverse", absent, *given, status=1).stderr
        assert f"There is no batch {absent}." in told
    told = service.command("reverse", str(batch_id), "--reason", "x" * 256, *given[2:], status=1).stderr
    assert "at most 255 characters" in told
