"""Every form of the console, found by following the links of its pages, and a scene in which there is something to do.

A page's form is sent as a browser sends it, so a new form is found and tried without being named anywhere.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pyotp
from flask import Flask
from werkzeug.test import TestResponse

from app.encryption import decrypted
from app.events.sequencer import number_events
from tests.integration import books
from tests.integration.visitors import PASSWORD, Visitor, make_member, sign_in, visitor

_LIST, _SENT = "a-list-that-is-not-sent-", "a-list-that-was-sent----"
_PAGES_OF_LISTS = (_LIST, f"{_LIST}/confirm", f"{_SENT}/outcome")
# What the form of *Settings* leads to.
_SETTINGS = "approval_above=5&approval_of=console&held_days=none&low_balance=none&requires_second_factor=no"
_CHANGE = f"/console/live/settings/change?{_SETTINGS}"
STARTS = (
    "/console/live",
    "/console/sandbox/sandbox",
    *(f"/console/live/send/{path}" for path in _PAGES_OF_LISTS),
    _CHANGE,
)
_PAGE = re.compile(r"/console/(?:live|sandbox)[^.]*")

# What a person types, by the name of the field.
TYPED = {
    "amount": "3",
    "email": "new@example.com",
    "first_name": "New",
    "from_sequence": "1",
    "pasted": "eve@example.com",
    "password": "quite another password",
    "again": "quite another password",
    "current": PASSWORD,
    "reason": "Wrong list",
    "url": "https://192.0.2.7/hook",
}
# What a person chooses instead of what the page offers.
CHOSEN = {"role": "sender", "label": "Autumn", "zone": "Europe/Berlin", "types": "batch.*"}
# What a person leaves empty, by the form: its page has shown the figures of all points.
LEFT_EMPTY = {"console.take_back": ("amount",)}
CHOSEN |= {"when": "later", "day": f"{datetime.now(UTC) + timedelta(days=5):%Y-%m-%d}", "clock": "09:30"}


@dataclass(kw_only=True)
class Form:
    """A form on a page: where it is sent, its fields as the page fills them, and which of them a person fills in."""

    page: str
    action: str
    endpoint: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    typed: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    """Reads the links and the posted forms of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page, self.links, self.forms = page, list[str](), list[Form]()
        self._form: Form | None = None
        self._choice = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "form":
            self._form = Form(page=self.page, action=given.get("action") or self.page)
            if given.get("method") == "post":
                self.forms.append(self._form)
        if self._form is None:
            return
        if _is_filled_in(tag, given):
            self._form.typed.add(name)
        if tag == "select":
            self._choice = name
        elif tag == "option" and (self._choice not in self._form.fields or "selected" in given):
            self._form.fields[self._choice] = given.get("value", "")
        elif tag in ("input", "textarea") and name and given.get("type") != "file":
            is_choice = given.get("type") in ("radio", "checkbox")
            if not is_choice or "checked" in given or "required" in given:
                self._form.fields[name] = given.get("value") or TYPED.get(name, "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None


def _is_filled_in(tag: str, given: dict[str, str]) -> bool:
    """Tell whether a person can write into a control, or chooses one thing of several by it."""
    is_typed = tag == "input" and given.get("type") not in ("hidden", "checkbox", "file")
    return bool(given.get("name")) and (is_typed or tag in ("select", "textarea"))


def read(path: str, page: TestResponse) -> tuple[list[str], list[Form]]:
    """Return the links of a page and its posted forms."""
    reader = _Reader(path)
    reader.feed(page.text)
    return reader.links, reader.forms


def all_pages(of: Visitor, *starts: str) -> Iterator[tuple[str, TestResponse]]:
    """Yield these pages and every page that links lead to, in the mode of the first."""
    waiting, seen = list(starts), set(starts)
    while waiting:
        path = waiting.pop(0)
        page = of.client.get(path)
        assert page.status_code in (200, 302, 303), path
        yield path, page
        links = [page.location] if page.status_code != 200 else read(path, page)[0]
        for link in links:
            bare = link.partition("#")[0]
            if bare not in seen and _PAGE.fullmatch(bare) and bare.startswith(starts[0]):
                seen.add(bare)
                waiting.append(bare)


def all_forms(app: Flask, of: Visitor) -> dict[str, Form]:
    """Return one form of each kind, by the endpoint and the last word of its address."""
    found: dict[str, Form] = {}
    routes = app.url_map.bind("")
    for path, page in all_pages(of, *STARTS):
        for form in read(path, page)[1]:
            form.endpoint = routes.match(form.action, method="POST")[0]
            last = form.action.rpartition("/")[2]
            whole = "of a list" if "/send/" in form.action else ""
            found[f"{form.endpoint} {last if last.isalpha() else ''} {whole}"] = form
    return found


def filled(of: Visitor, form: Form) -> dict[str, str]:
    """Look at the page of a form again, and return the fields as a person sends them."""
    again = next(one for one in read(form.page, of.client.get(form.page))[1] if one.action == form.action)
    if again.fields.get("sealed"):
        again.fields["code"] = pyotp.TOTP(decrypted(again.fields["sealed"]).split()[1]).now()
    empty = dict.fromkeys(LEFT_EMPTY.get(form.endpoint, ()), "")
    return again.fields | empty | {name: CHOSEN[name] for name in CHOSEN if name in again.fields}


def scene(app: Flask) -> Visitor:
    """Return an admin in whose organization there is something to do on every page, with the same ids each time."""
    books.empty()
    organization_id = books.make_organization(1_000, sandbox_balance=1_000)
    admin = visitor(app, organization_id, "admin", "ann@example.com")
    sign_in(app, admin.email)
    visitor(app, organization_id, "viewer", "bob@example.com")
    books.execute(
        "INSERT INTO second_factors (secret, used_step, recovery_hashes) VALUES ('', 0, '{}')",
        "UPDATE members SET second_factor_id = 1 WHERE email_key = 'bob@example.com'",
    )
    books.make_users("ann@example.com")
    books.issue_now(organization_id, ["ann@example.com", "eve@example.com"], 20, hold_days=2)
    _send_to_more_than_the_balance_pays(admin)
    books.queue_batch(organization_id, ["bob@example.com"], 5)
    later = datetime.now(UTC) + timedelta(days=2)
    scheduled = books.queue_batch(organization_id, ["bob@example.com"], 5, send_at=later)
    books.execute("UPDATE organizations SET approval_above = 6, approval_of = 'all'")
    awaiting = books.queue_batch(organization_id, ["bob@example.com"], 7)
    books.execute("UPDATE organizations SET approval_above = NULL")
    for name in ("Failing", "Disabled"):
        answer = admin.post("/webhooks", of="/webhooks", url=TYPED["url"], types="*", description=name)
        assert answer.status_code == 200, answer.text
    books.run(number_events, organization_id)
    books.execute(
        "UPDATE webhooks SET position = 1",
        "UPDATE webhooks SET failures = 1, failing_since = now(), retry_at = now() WHERE id = 1",
        "UPDATE webhooks SET disabled_reason = 'caller' WHERE id = 2",
    )
    books.issue_now(organization_id, ["ann@example.com"], 5, sandbox=True)
    answer = admin.post("/send", of="/send", pasted="ann@example.com", amount="2")
    assert answer.status_code == 303, answer.text
    books.execute(f"UPDATE uploads SET token = '{_LIST}' WHERE sent_at IS NULL")
    make_member(books.make_organization(name="Elsewhere"), admin.email, "viewer")
    books.execute(
        "UPDATE member_sessions SET opens_others = true",
        "INSERT INTO uploads (organization_id, member_id, sandbox, token, name, recipients, points, digest, sent_at,"
        f" batch_ids) SELECT {organization_id}, {admin.member_id}, false, 'a-list-of-one-batch--' || id, 'later', 1, 1,"
        f" 'd', now(), ARRAY[id] FROM unnest(ARRAY[{scheduled}, {awaiting}]) AS id",
    )
    return admin


def _send_to_more_than_the_balance_pays(admin: Visitor) -> None:
    path = admin.post("/send", of="/send", pasted="ann@example.com\neve@example.com", amount="600").location
    [form] = [one for one in read("", admin.get(f"{path}/confirm"))[1] if one.action == f"{path}/confirm"]
    assert admin.client.post(form.action, data=form.fields).status_code == 303
    books.drain_all(admin.organization_id)
    books.execute(f"UPDATE uploads SET token = '{_SENT}'")
