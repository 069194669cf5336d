"""Who did what is written with the deed, by every command and every call of the platform that changes something."""

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from cryptography.fernet import Fernet
from flask.testing import FlaskClient

from app.cli import points
from app.cli.access import keys, members, platform_keys
from app.cli.answer import Answer
from app.cli.operating import webhooks
from app.cli.organizations import organizations
from app.cli.users import users
from app.errors import RefillTooLarge
from app.ledger.refill import refill
from app.pages import action_pages
from app.pages.action_pages import ActionRow
from app.pages.filters import Filters
from app.platform import keys as platform_key_rows
from app.postgres.database import transaction
from app.scope import Author
from app.web.application import create_app
from tests.conftest import forget_everything
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

_OF_ALL = Filters(organization_id=0, sandbox=False)


def _log(filters: Filters = _OF_ALL) -> list[ActionRow]:
    """Return the log, oldest first."""
    with transaction() as connection:
        return list(action_pages.page(connection, filters, start=None, limit=1_000).rows)[::-1]


def _new(since: list[ActionRow]) -> list[tuple[str, int | None, int | None, str | None]]:
    """Return what came since: the action, its organization, what it is about, and its detail."""
    return [(row.action, row.organization_id, row.subject_id, row.detail) for row in _log()[len(since) :]]


def _command(group: click.Group, name: str, *arguments: Any) -> Answer:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    callback = command.callback
    assert callback is not None
    *places, last = arguments or ((),)
    named = last if isinstance(last, dict) else {}
    answer: Answer = vars(callback)["__wrapped__"](*(places if named else arguments), **named)
    return answer


def test_every_command_that_changes_something_writes_who_gave_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    forget_everything()
    monkeypatch.setattr("app.cli.access._link_answer", lambda *_: Answer({}))
    file = tmp_path / "people.csv"
    file.write_text("email,first_name,last_name\nada@example.com,Ada,\ngrace@example.com,Grace,\nx,X,\n")
    wanted: list[Any] = [
        *((organizations, "create", ("Acme", 5, 0, "a"), written)
          for written in ([("organization.made", 1, 1, None), ("balance.refilled", 1, 1, "5")], [])),
        (organizations, "refill", (1, 7, True, "a"), [("balance.refilled", 1, 2, "7")]),
        (organizations, "refill", (1, 7, True, "a"), []),
        (organizations, "set", (1, {"held_days": 30}), [("organization.changed", 1, 1, "held_days: none to 30")]),
        (organizations, "approval", (1, {"approval_above": 9, "approval_of": "all"}),
         [("organization.changed", 1, 1, "approval_above: none to 9, approval_of: console to all")]),
        *((organizations, word, (1,), [(f"organization.{word.rstrip('e')}ed", 1, 1, None)])
          for word in ("suspend", "resume", "disable", "enable")),
        (organizations, "enable", (1,), []),
        (keys, "create", (1, True, "Till"), [("key.made", 1, 1, None)]),
        *((keys, "revoke", (1,), written) for written in ([("key.revoked", 1, 1, None)], [])),
        (platform_keys, "create", ("Sign-up", ()), [("platform_key.made", None, 1, None)]),
        *((platform_keys, "revoke", (1,), written) for written in ([("platform_key.revoked", None, 1, None)], [])),
        (members, "create", (1, "admin", None, {"email": "m@example.com", "first_name": "M", "last_name": "N"}),
         [("member.added", 1, 1, "admin")]),
        (members, "link", ("1", None, None), [("member.link_made", 1, 1, None)]),
        (members, "reset-second-factor", ("1", None), []),
        (members, "remove", ("m@example.com", None), [("member.removed", 1, 1, None)]),
        (users, "create", ("bo@example.com", "Bo", "B"), [("user.registered", None, 1, None)]),
        (users, "change", (1, {"email": "b@example.com", "last_name": "C"}),
         [("user.changed", None, 1, "email, last_name")]),
        *((users, "import", (file,), written) for written in ([("users.registered", None, None, "2")], [])),
        (webhooks, "reencrypt", (), [("webhooks.reencrypted", None, None, "0")]),
        (points, "restored", (), [("database.restored", None, None, None)]),
    ]  # fmt: skip
    for group, name, arguments, written in wanted:
        before = _log()
        _command(group, name, *arguments)
        assert _new(before) == written, (name, arguments)
    assert {(row.by_type, row.by_id, row.by_name) for row in _log()} == {("operator", None, getpass.getuser())}


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Give the calls of a platform key, whose id is 1; each returns its status."""
    monkeypatch.setenv("POINTS_PUBLIC_URL", "https://points.example.com")
    forget_everything()
    _, key = books.run(platform_key_rows.create, "Billing")
    client: FlaskClient = create_app().test_client()

    def call(method: str, path: str, **body: Any) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return client.open(f"/v1/platform/{path}", method=method, json=body, headers=headers).status_code

    return call


def test_every_call_of_the_platform_that_changes_something_writes_its_key(call: Callable[..., int]) -> None:
    ada, grace = ({"email": f"{name}@example.com", "first_name": name} for name in ("ada", "grace"))
    wanted: list[Any] = [
        ("POST", "organizations", {"name": "Acme", "sandbox_balance": 0}, [("organization.made", 1, 1, None)]),
        *(("POST", "organizations/1/refills", {"amount": 5, "reference": "a"}, written)
          for written in ([("balance.refilled", 1, 1, "5")], [])),
        ("PATCH", "organizations/1", {"name": "Globex", "low_balance": 5, "is_suspended": True},
         [("organization.suspended", 1, 1, None), ("organization.changed", 1, 1, "name, low_balance: none to 5")]),
        ("POST", "organizations/1/members", {"email": "m@example.com", "first_name": "M", "role": "viewer"},
         [("member.added", 1, 1, "viewer")]),
        ("POST", "organizations/1/members/1/link", {}, [("member.link_made", 1, 1, None)]),
        *(("DELETE", "organizations/1/members/1", {}, written) for written in ([("member.removed", 1, 1, None)], [])),
        *(("POST", "users", ada, written) for written in ([("user.registered", None, 1, None)], [])),
        *(("POST", "users/bulk", {"users": [ada, grace, {}]}, written)
          for written in ([("users.registered", None, None, "1")], [])),
        ("PATCH", "users/1", {"email": "ada@example.org", "last_name": "L"},
         [("user.changed", None, 1, "email, last_name")]),
        ("PATCH", "users/1", {"email": "grace@example.com"}, []),
        ("POST", "users/1/erase", {}, [("user.erased", None, 1, None)]),
        ("POST", "users/1/erase", {}, []),
        ("POST", "organizations/1/keys", {"name": "Till", "sandbox": True}, [("key.made", 1, 1, None)]),
        *(("DELETE", "organizations/1/keys/1", {}, written) for written in ([("key.revoked", 1, 1, None)], [])),
        ("POST", "organizations", {"name": ""}, []),
    ]  # fmt: skip
    first = _log()
    for method, path, body, written in wanted:
        before = _log()
        call(method, path, **body)
        assert _new(before) == written, (method, path)
    assert {(row.by_id, row.by_name) for row in _log()[len(first) :]} == {(1, "Billing")}
    text = " ".join(str(row) for row in _log())
    assert not any(word in text for word in ("ada", "grace", "@", "pts_"))


def test_an_action_is_there_exactly_if_its_deed_is() -> None:
    organization_id, before = books.make_organization(), _log()
    refused = pytest.raises(RefillTooLarge)
    with refused, transaction(by=Author(operator="ada")) as connection:
        refill(connection, organization_id, 5)
        refill(connection, organization_id, 2**63 - 1)
    assert _log() == before
