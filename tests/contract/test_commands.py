"""The commands of an operator: what they do, what they print, and how they fail."""

import json
import re
from pathlib import Path

import pytest

from tests.contract import postgresql
from tests.contract.calls import (
    HELD,
    PAID,
    TIMESTAMP,
    Organization,
    address,
    addresses,
    flags,
    organization,
    success,
)
from tests.ports import free_port
from tests.service.up import Service


def test_the_first_start_prints_the_keys_of_a_demo_organization_that_has_issued(service: Service) -> None:
    said = "\n".join(service.output)
    assert service.url in said
    [live] = set(re.findall(r"pts_live_\w{40,}", said))
    [development] = set(re.findall(r"pts_dev_\w{40,}", said))
    [platform] = set(re.findall(r"pts_platform_\w{40,}", said))
    # Grace has signed up after the batch.
    assert flags(success(service.call("GET", "/v1/transactions", key=live))["transactions"]) == [HELD, PAID, PAID]
    assert len(success(service.call("GET", "/v1/platform/users", key=platform))["users"]) >= 2
    assert success(service.call("GET", "/v1/transactions", key=development))["transactions"] == []
    # The send that is printed to be pasted, with the key that is printed for it.
    [_, pasted] = re.findall(r"-d '(.*)'", said)
    sent = service.call("POST", "/v1/points/send", key=development, json=json.loads(pasted))
    assert flags(success(sent, 201)["transactions"]) == [PAID, HELD]


def test_a_refill_given_again_with_its_reference_is_booked_once(service: Service) -> None:
    number, other = (str(service.json("organizations", "create", "Acme")["id"]) for _ in range(2))
    refill = ("organizations", "refill", number, "50", "--reference", "invoice-7")
    assert service.json(*refill)["balance"] == 50
    assert service.json(*refill)["balance"] == 50
    assert "Nothing was booked" in service.command(*refill).stdout
    # It may be meant for another organization, but neither for another amount nor for the other balance.
    assert service.json("organizations", "refill", other, "50", "--reference", "invoice-7")["balance"] == 50
    for more in (("51",), ("50", "--sandbox")):
        told = service.command("organizations", "refill", number, *more, "--reference", "invoice-7", status=1).stderr
        assert "invoice-7" in told
        assert "50 live points" in told
    for none in ("", "a b", "a" * 129):
        told = service.command("organizations", "refill", number, "1", "--reference", none, status=1).stderr
        assert "1 to 128 visible characters" in told
    assert service.json("organizations", "show", number)["balance"] == 50


def test_organizations_are_made_listed_shown_refilled_and_stopped(service: Service) -> None:
    made = service.json("organizations", "create", "Globex & Söhne", "--balance", "100", "--sandbox-balance", "7")
    figures = {"name": "Globex & Söhne", "balance": 100, "last_refill": 100, "sandbox_balance": 7}
    assert made.items() >= figures.items()
    assert TIMESTAMP.match(made["created_at"])
    number = str(made["id"])
    assert service.json("organizations", "refill", number, "50") == {**made, "balance": 150, "last_refill": 150}
    refilled = service.json("organizations", "refill", number, "3", "--sandbox")
    figures = {"balance": 150, "last_refill": 150, "sandbox_balance": 10, "sandbox_last_refill": 10}
    assert refilled.items() >= figures.items()
    shown = refilled
    for verb, flag, value in (
        ("disable", "is_disabled", True),
        ("suspend", "is_suspended", True),
        ("enable", "is_disabled", False),
    ):
        shown |= {flag: value}
        assert service.json("organizations", verb, number) == shown
    shown |= {"is_suspended": False}
    assert service.json("organizations", "resume", number) == service.json("organizations", "show", number) == shown
    assert shown in service.json("organizations", "list")


def test_a_key_is_shown_once_and_listed_without_its_text(service: Service, acme: Organization) -> None:
    _, unnamed = acme.new_key_with_id()
    made = service.json("keys", "create", str(acme.id), "--development", "--name", "Till 7")
    listed = service.command("keys", "list", str(acme.id), "--json").stdout
    [key] = [key for key in json.loads(listed) if key["id"] == made["id"]]
    assert (key["name"], key["revoked_at"]) == ("Till 7", None)
    names = {key["id"]: key["name"] for key in json.loads(listed)}
    assert names.items() >= {made["id"]: "Till 7", unnamed: None}.items()
    assert made["key"][16:] not in listed


def test_an_import_names_each_bad_row_and_credits_held_points(acme: Organization, tmp_path: Path) -> None:
    service, ann, bob = acme.service, address(), address()
    success(acme.live.send({"recipient": bob, "amount": 30}), 201)
    file = tmp_path / "users.csv"
    file.write_text(
        f"last_name,email,first_name,note\nLovelace,{ann},Ada,x\nNobody,nonsense,No,x\n"
        f'"Hop\nper",{bob},Grace,x\nNobody,{address()},,x\n,{address()},Cy,x\n'
    )
    outcome = service.json("users", "import", str(file), status=1)
    assert outcome.items() >= {"registered": 3, "already_registered": 0, "bad": 2}.items()
    assert [row["line"] for row in outcome["bad_rows"]] == [3, 6]
    told = service.command("users", "import", str(file), status=1).stderr
    assert all(line in told for line in ("line 3", "line 6"))
    shown = service.json("users", "show", bob.upper())
    assert (shown["email"], shown["balance"]) == (bob, 30)
    assert service.json("users", "show", ann)["balance"] == 0


def test_status_says_what_runs_and_where(service: Service) -> None:
    found = service.json("status")
    assert found["web_url"] == service.url
    assert found.keys() >= {"database_url", "redis_url", "web_url", "flower_url"}
    assert all(found[name] for name in ("database", "redis", "web", "workers", "beat", "flower"))
    assert found["down"] == []
    assert "organizations" not in found
    printed = service.command("status").stdout
    assert printed.splitlines()[0] == "Status:         all is well."
    assert service.url in printed
    assert found["database_url"] not in printed, "a password belongs on no screen"


def test_status_shows_organizations_with_a_low_balance_first_and_what_each_issued(service: Service) -> None:
    low = organization(service, 100)
    low.change(low_balance=50)
    success(low.live.send({"recipients": addresses(2), "amount": 30}), 201)
    found = service.json("status", "--organizations")
    [shown] = [one for one in found["organizations"] if one["id"] == low.id]
    assert shown.items() >= {"balance": 40, "low_balance": 50, "is_low": True, "issued_lately": 60}.items()
    assert len(shown["issued_by_day"]) == 7
    assert next(iter(shown["issued_by_day"].values())) == shown["issued_today"]
    assert sum(shown["issued_by_day"].values()) == 60
    is_low = [one["is_low"] for one in found["organizations"]]
    assert is_low == sorted(is_low, reverse=True)
    assert len(is_low) <= 100
    printed = service.command("status", "--organizations").stdout
    assert re.search(rf"^ *{low.id} .* 40 +50 +yes ", printed, re.MULTILINE)


def test_status_says_why_the_database_lets_nobody_in(service: Service) -> None:
    right = service.json("status")["database_url"]
    user, _, rest = right.partition("@")
    wrong = f"{user.rpartition(':')[0]}:wrong@{rest}"
    elsewhere = ["--data-dir", str(service.data_dir)]
    done = service.run("status", *elsewhere, DATABASE_URL=wrong)
    assert done.returncode == 1
    assert "password authentication failed" in done.stdout.splitlines()[0]
    away = service.run("status", *elsewhere, DATABASE_URL="postgresql://points:hush@127.0.0.1:1/points")
    assert away.returncode == 1
    assert "Connection refused" in away.stdout.splitlines()[0]
    assert "hush" not in away.stdout


def test_status_with_servers_of_ones_own_asks_web_or_says_that_it_could_not(service: Service, tmp_path: Path) -> None:
    found = service.json("status")
    servers = {"DATABASE_URL": found["database_url"], "REDIS_URL": found["redis_url"]}
    nobody = f"http://127.0.0.1:{free_port()}"
    unknown = "not all is known. Whether web answers is not known"
    for url, status, first in (
        ({"POINTS_PUBLIC_URL": service.url}, 0, "all is well."),
        # Another server answers, as nginx does without a web behind it.
        ({"POINTS_PUBLIC_URL": found["flower_url"]}, 1, "not well. Web does not answer."),
        ({"POINTS_PUBLIC_URL": nobody}, 0, f"{unknown}: nothing answers here at {nobody}."),
        ({}, 0, f"{unknown}: POINTS_PUBLIC_URL is not set."),
    ):
        done = service.run("status", "--data-dir", str(tmp_path / "none"), **servers, **url)
        assert (done.returncode, done.stdout.startswith(f"Status:         {first}")) == (status, True), done.stdout


def test_the_audit_and_the_migration_say_that_all_is_well(service: Service) -> None:
    assert "The books balance" in service.command("audit").stdout
    assert isinstance(service.json("migrate"), dict)


@pytest.mark.skipif(postgresql.PROGRAMS is not None, reason="where DATABASE_URL is set, no folder holds the data")
def test_a_command_works_in_a_folder_of_its_own_while_no_service_runs(service: Service, tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    made = service.run("organizations", "create", "Alone", "--balance", "5", "--json", "--data-dir", folder)
    assert json.loads(made.stdout)["balance"] == 5, made.stderr
    shown = service.run("organizations", "show", "1", "--json", "--data-dir", folder)
    assert json.loads(shown.stdout)["name"] == "Alone"
    assert folder in shown.stderr, "it is said which database was used: nothing runs there"


_NO_MAKERS = ["audit", "keys revoke 3", "keys create 1", "keys list 1", "organizations list"]
_NO_MAKERS += ["organizations show 1", "users show ann@example.com", "users create ann@example.com Ann A"]


@pytest.mark.parametrize("words", _NO_MAKERS)
def test_the_wrong_folder_is_not_an_empty_service(service: Service, tmp_path: Path, words: str) -> None:
    folder = tmp_path / "mistyped"
    looked = service.run(*words.split(), "--data-dir", str(folder))
    assert (looked.returncode, looked.stdout) == (1, "")
    assert str(folder) in looked.stderr
    assert not folder.exists()


def test_a_second_service_in_the_same_folder_is_refused_and_the_first_runs_on(service: Service) -> None:
    ports = ("--port", str(free_port()), "--flower-port", str(free_port()))
    assert str(service.data_dir) in service.command("up", *ports, status=1).stderr
    success(service.call("GET", "/readyz"))
