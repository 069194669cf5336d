"""Mail to members: who is told of what, once for many, by a real SMTP server that is slow, refuses or dies."""

import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, MutableMapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiosmtpd.smtp import AuthResult
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from flask import Flask

from app import organizations
from app.api_keys import Caller
from app.batches import approval, awaiting, schedule
from app.batches.accept import Acceptance, Send, SendingMember, accept
from app.batches.request import IssueRequest
from app.cli.status import warnings
from app.mail import due as due_rows
from app.mail.sending import send_due
from app.members import links, members
from app.scope import Scope
from app.settings import settings
from tests.conftest import forget_everything
from tests.deadline import until
from tests.integration import books, hooks
from tests.integration.visitors import make_member, visitor
from tests.post_office import PostOffice

pytestmark = pytest.mark.usefixtures("database", "balanced")

_URL = "https://points.example.com"
_RECIPIENT, _LABEL = "ada@example.net", "for bob@example.net"


@pytest.fixture
def office(database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostOffice]:
    """Run an SMTP server, and have the service send its mail there."""
    with PostOffice().open() as office:
        monkeypatch.setenv("POINTS_SMTP_URL", office.url)
        monkeypatch.setenv("POINTS_MAIL_FROM", "Points <points@example.com>")
        monkeypatch.setenv("POINTS_PUBLIC_URL", _URL)
        monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
        settings.cache_clear()
        yield office


class Members(NamedTuple):
    """The ids of the members of an organization in which each list above 100 points awaits an approval."""

    organization_id: int
    ann: int
    bo: int
    mary: int


@pytest.fixture
def acme(office: PostOffice) -> Members:
    made = books.make_organization(1_000, sandbox_balance=1_000)
    books.run(organizations.change, made, {"approval_above": 100, "low_balance": 900})
    roles = {"ann": "sender", "bo": "approver", "mary": "admin", "vi": "viewer"}
    ids = {name: make_member(made, f"{name}@example.com", role) for name, role in roles.items()}
    books.execute("DELETE FROM mails")  # Their links.
    return Members(made, ids["ann"], ids["bo"], ids["mary"])


def _send(of: Members, member_id: int, amount: int = 101, *, sandbox: bool = False, later: bool = False) -> int:
    """Send a list of a member, number its events, and return its batch."""
    request = IssueRequest(
        emails=[_RECIPIENT],
        email_keys=[_RECIPIENT],
        amount=amount,
        atomic=False,
        label=_LABEL,
        send_at=datetime.now(UTC) + timedelta(hours=1) if later else None,
    )
    [accepted] = books.run(accept, [Send(SendingMember(member_id, sandbox), request, None)])
    assert isinstance(accepted, Acceptance), accepted
    hooks.number(of.organization_id)
    return accepted.batch_id


def _answer(of: Members, member_id: int, batch_id: int, reason: str | None = None) -> None:
    organization = books.run(organizations.get, Scope(of.organization_id, sandbox=False))
    who = Caller(api_key_id=None, sandbox=False, organization=organization, member_id=member_id)
    if reason is None:
        books.run(approval.approve, who, batch_id)
    else:
        books.run(approval.reject, who, batch_id, reason)
    hooks.number(of.organization_id)


def _drain(of: Members) -> None:
    books.move_scheduled("clock_timestamp() - interval '1 s'", "true")
    books.run(schedule.release_due, at_most=10)
    books.drain_all(of.organization_id)
    hooks.number(of.organization_id)


def _post(at_most: int = 20) -> Counter[str]:
    """Let the time pass after which mail is due, and send it, as often as a worker looks; return the outcomes."""
    outcomes: list[str] = []
    for _ in range(at_most):
        books.run(due_rows.take)
        books.execute("UPDATE mails SET due_at = clock_timestamp() WHERE state = 'waiting'")
        before = len(outcomes)
        send_due(tell=outcomes.append)
        if len(outcomes) == before:
            break
    return Counter(outcomes)


def _states() -> Counter[str]:
    return Counter(books.values("SELECT state FROM mails"))


def test_members_are_told_what_concerns_them_and_nobody_else(acme: Members, office: PostOffice) -> None:
    told = office.taken
    first = _send(acme, acme.ann)
    _post()
    awaits = f"Acme: batch {first} awaits your approval"
    assert told() == [("bo@example.com", awaits), ("mary@example.com", awaits)]
    _answer(acme, acme.bo, first)
    _post()
    assert told() == [("ann@example.com", f"Acme: batch {first} was approved")]
    _drain(acme)
    _post()
    assert told() == [("mary@example.com", "Acme: the balance is low")], "the sender was told of the approval"

    second, third = _send(acme, acme.bo), _send(acme, acme.ann, 102)
    _answer(acme, acme.mary, second, "Not bob@example.net again")
    _post()
    assert told() == [
        ("bo@example.com", f"Acme: batch {second} was rejected"),
        ("bo@example.com", f"Acme: batch {third} awaits your approval"),
        ("mary@example.com", f"Acme: batch {third} awaits your approval"),
    ], "what was decided meanwhile awaits nobody, and never its sender"
    books.execute(
        f"UPDATE batches SET created_at = created_at - interval '8 days' WHERE id = {third}", books.DIGEST_BATCHES
    )
    books.run(awaiting.reject_unanswered, at_most=10)
    hooks.number(acme.organization_id)
    _post()
    assert "because nobody answered in time" in office.mails[0].get_content()
    assert told() == [("ann@example.com", f"Acme: batch {third} was rejected")]

    later = _send(acme, acme.ann, 50, later=True)
    _send(acme, acme.ann, 20)
    _drain(acme)
    assert _states()["news"] == 1
    _post()
    assert told() == [("ann@example.com", f"Acme: batch {later} was issued")], "the other was seen at once"
    _send(acme, acme.ann, 50, later=True)
    books.set_flags(acme.organization_id, is_suspended=True)
    _drain(acme)
    _post()
    assert [subject.rpartition(" ")[2] for _, subject in told()] == ["refused"]
    assert "news" not in _states()


def test_a_mail_says_what_and_where_and_holds_nothing_that_an_erasure_would_look_for(
    acme: Members, office: PostOffice
) -> None:
    books.execute("UPDATE members SET time_zone = 'Asia/Kolkata'")
    live, sandbox = _send(acme, acme.ann), _send(acme, acme.ann, 200, sandbox=True)
    _post()
    assert [subject for to, subject in office.taken() if to.startswith("bo@")] == [
        f"Acme: batch {live} awaits your approval",
        f"[Sandbox] Acme: batch {sandbox} awaits your approval",
    ]
    _answer(acme, acme.bo, live, "Not bob@example.net again")
    _post()
    [mail] = office.mails
    text = mail.get_content().replace("\r\n", "\n")
    assert (
        f"Batch {live} was rejected: 101 points to 1 recipient, by Ann Approver.\n{_URL}/console/live/batches/{live}"
        in text
    )
    assert f"{_URL}/console/live/account#mail" in text
    assert (mail["From"], mail["Auto-Submitted"]) == ("Points <points@example.com>", "auto-generated")
    for secret in ("example.net", "bob", "pts_"):
        assert secret not in mail.as_string()
    assert not any("example" in row for row in books.values("SELECT mails::text FROM mails"))


def test_a_hundred_lists_are_one_mail_and_the_next_comes_a_minute_later(acme: Members, office: PostOffice) -> None:
    for _ in range(100):
        _send(acme, acme.ann)
    send_due(tell=lambda _: None)
    assert office.taken() == [], "they are collected for some seconds"
    _post()
    text = office.mails[0].get_content()
    assert ("And 90 more." in text, text.count("awaits your approval")) == (True, 10)
    awaits = "Acme: 100 batches await your approval"
    assert office.taken() == [("bo@example.com", awaits), ("mary@example.com", awaits)]
    _send(acme, acme.ann)
    books.run(due_rows.take)
    apart = "SELECT round(extract(epoch FROM due_at - clock_timestamp()) / 60) FROM mails WHERE state = 'waiting'"
    assert books.values(apart) == [1, 1]


@pytest.mark.parametrize("answer", ["451 Later", "550 No such mailbox", "421 Closing", ""])
def test_a_mail_that_the_server_does_not_take_comes_later_and_keeps_back_no_other(
    acme: Members, office: PostOffice, answer: str
) -> None:
    batch = _send(acme, acme.ann)
    office.answers = ["250 OK", answer]  # To one of the two; the next attempt is a new connection.
    assert _post() == {"sent": 2, "failed": 1}
    awaits = f"Acme: batch {batch} awaits your approval"
    came = office.taken()
    # A server that died may have taken the mail: it may come twice, and never not at all.
    assert sorted(set(came)) == [("bo@example.com", awaits), ("mary@example.com", awaits)]
    assert len(came) == (2 if answer else 3)


def test_a_server_that_is_away_is_tried_for_a_day_with_growing_pauses_and_then_given_up(
    acme: Members, office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_SMTP_URL", PostOffice().url)  # Nothing listens there.
    forget_everything()
    _send(acme, acme.ann)
    pause = "SELECT round(extract(epoch FROM max(due_at - clock_timestamp()))) FROM mails WHERE failures > 0"
    pauses: list[int] = []
    outcomes: list[str] = []
    for _ in range(10):
        books.run(due_rows.take)
        books.execute("UPDATE mails SET due_at = clock_timestamp() WHERE state = 'waiting' AND member_id = 2")
        send_due(tell=outcomes.append)
        pauses.append(int(books.values(pause)[0]))
    assert pauses == [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    unsent = books.run(due_rows.unsent)
    assert unsent == (1, 0, "ConnectionRefusedError")
    books.execute("UPDATE mails SET created_at = created_at - interval '25 hours'")
    assert _post() == {"given_up": 2}
    assert books.run(due_rows.unsent) == (0, 2, "ConnectionRefusedError")
    [warning] = warnings({"oldest_snapshot": None, "unsent_mail": books.run(due_rows.unsent)._asdict(), "web": True})
    assert "0 mails to members wait for another attempt, 2 were given up in the last 7 days" in warning
    books.execute("UPDATE mails SET due_at = due_at - interval '7 days'")
    _post()
    assert not _states()
    assert set(outcomes) == {"failed"}


def test_a_server_that_is_slow_counts_as_away(
    acme: Members, office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.mail.server._TIMEOUT_S", 0.2)
    _send(acme, acme.bo)
    office.slow_s = 5
    assert _post(at_most=1) == {"failed": 1}
    assert books.run(due_rows.unsent).error == "SMTPServerDisconnected"
    office.slow_s = 0
    assert _post() == {"sent": 1}
    assert len({mail["Message-ID"] for mail in office.mails}) == 1, "whoever gets it twice sees that it is the same"


def test_a_worker_that_is_killed_before_it_notes_a_mail_loses_none(acme: Members, office: PostOffice) -> None:
    _send(acme, acme.ann)
    books.run(due_rows.take)
    books.execute("UPDATE mails SET due_at = clock_timestamp()")
    office.slow_s = 60
    worker = subprocess.Popen([sys.executable, "-c", "from app.mail.sending import send_due; send_due(tell=print)"])
    until(lambda: office.mails, "the server has a mail")
    worker.kill()
    worker.wait()
    office.slow_s = 0
    assert _post() == {"sent": 2}
    assert len(office.mails) == 3
    assert {to for to, _ in office.taken()} == {"bo@example.com", "mary@example.com"}
    assert _states() == {"done": 2}


def test_an_invitation_goes_by_mail_and_its_link_stands_there_alone(
    app: Flask, acme: Members, office: PostOffice
) -> None:
    mary = visitor(app, acme.organization_id, "admin")
    fields = {"email": "new@bücher.example", "first_name": "Nea", "last_name": "", "role": "sender"}
    page = mary.post("/members", of="/members", **fields)
    assert "It is sent there by e-mail too" in page.text
    books.execute("UPDATE organizations SET name = 'Müller\n& Co'")
    _post()
    link = f"{_URL}/console/link/"
    [mail] = [mail for mail in office.mails if mail["To"] == "new@xn--bcher-kva.example"]
    assert mail["Subject"] == "Müller & Co: you are invited"
    text = mail.get_content()
    assert "You are invited to the console of Müller & Co, as a sender." in text
    token = text.partition(link)[2].split()[0]
    assert f"{link}{token}" in page.text
    assert app.test_client().get(f"/console/link/{token}").status_code == 200
    assert set(_states()) == {"done"}
    assert not any(token in row for row in books.values("SELECT mails::text FROM mails"))
    office.mails.clear()
    for _ in range(2):
        mary.post("/members/6/link", of="/members/6")
    _post()
    assert len(office.mails) == 1, "the earlier of two links works no longer"


def test_a_member_turns_each_kind_off_alone(app: Flask, acme: Members, office: PostOffice) -> None:
    bo = visitor(app, acme.organization_id, "approver", "bob@example.org")
    kinds = ["answered", "later", "low_balance", "link"]
    assert bo.get("/account").text.count("checked") == 5
    for _ in range(2):
        told = bo.post("/account/mail", of="/account", kinds=kinds)
        assert told.status_code == 303
    assert bo.get("/account").text.count("checked") == 4
    assert bo.get("/activity").text.count("Chose which e-mails to get") == 1
    batch = _send(acme, acme.ann)
    _answer(acme, acme.bo, _send(acme, bo.member_id))
    _post()
    assert sorted(subject for to, subject in office.taken() if to == "bob@example.org") == [
        f"Acme: batch {batch + 1} was approved"
    ]
    assert bo.post("/account/mail", of="/account", kinds=["everything"]).status_code == 400


def test_without_a_server_nothing_is_put_down_and_the_pages_say_so(
    app: Flask, acme: Members, office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POINTS_SMTP_URL")
    settings.cache_clear()
    mary = visitor(app, acme.organization_id, "admin", "mary2@example.com")
    assert "No e-mail is sent" in mary.get("/account").text
    fields = {"email": "new@example.com", "first_name": "Nea", "last_name": "", "role": "sender"}
    assert "No e-mail is sent" in mary.post("/members", of="/members", **fields).text
    _send(acme, acme.ann)
    assert not _states()


def test_mail_is_printed_to_the_log_without_the_address_and_the_link(
    app: Flask, acme: Members, monkeypatch: pytest.MonkeyPatch, events: list[MutableMapping[str, Any]]
) -> None:
    monkeypatch.setenv("POINTS_SMTP_URL", "log:")
    settings.cache_clear()
    books.run(links.make_link, books.run(members.lock, acme.bo), by=None)
    assert _post() == {"sent": 1}
    [line] = [event for event in events if event["event"] == "mail_printed"]
    assert (line["member_id"], line["subject"]) == (acme.bo, "Acme: choose your password")
    assert "/console/link/***" in line["text"]
    assert "@" not in str(line)


def _certificate(folder: Path) -> ssl.SSLContext:
    """Make a certificate of this machine that nobody else trusts, in `folder`; return a server's context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    pem = builder.sign(key, SHA256()).public_bytes(Encoding.PEM)
    (folder / "certificate.pem").write_bytes(pem)
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize("url", ["smtps://u%40x:hush@localhost:{}", "smtp://u%40x:hush@localhost:{}?starttls"])
def test_a_password_goes_by_tls_alone_and_to_a_server_whose_certificate_is_good(
    acme: Members, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sign_in(_server: object, _session: object, _envelope: object, _mechanism: str, given: Any) -> AuthResult:
        return AuthResult(success=(given.login, given.password) == (b"u@x", b"hush"))

    tls = _certificate(tmp_path)
    options: dict[str, Any] = (
        {"ssl_context": tls} if url.startswith("smtps") else {"tls_context": tls, "require_starttls": True}
    )
    if url.startswith("smtps"):
        options["auth_require_tls"] = False  # It does not see that all of the connection is encrypted.
    with PostOffice(options={**options, "authenticator": sign_in, "auth_required": True}).open() as office:
        monkeypatch.setenv("POINTS_SMTP_URL", url.format(office.port))
        settings.cache_clear()
        _send(acme, acme.bo)
        assert _post(at_most=1) == {"failed": 1}
        assert books.run(due_rows.unsent).error == "SSLCertVerificationError"
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        assert _post() == {"sent": 1}
        assert len(office.mails) == 1
