"""The filters and names that templates use: formats of numbers and times, the signed-in member, the navigation."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from flask import Flask, g, request
from flask_wtf.csrf import generate_csrf

from app.batches.approval import TO_ANSWER_MAX
from app.console.blueprints import LIVE, SANDBOX, current_zone
from app.console.caller import new_form_id
from app.console.forms import faults_of, setting_text
from app.members import members
from app.settings import settings
from app.values import numbers, texts
from app.values.ids import batch_and_position
from app.values.timestamps import parse_timestamp
from app.values.zones import moment_in


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line of the navigation: the page, the lowest role that sees it, and the modes it is of.

    It may be the same in both modes, or of the sandbox only.
    """

    endpoint: str
    words: str
    role: str = members.VIEWER
    of_both_modes: bool = False
    of_sandbox: bool = False


# First the pages of a mode, then those of the whole organization.
NAVIGATION = (
    (
        Entry(endpoint="console.overview", words="Overview"),
        Entry(endpoint="console.send", words="Send", role=members.SENDER),
        Entry(endpoint="console.lists", words="Lists"),
        Entry(endpoint="console.approvals", words="Approvals"),
        Entry(endpoint="console.list_batches", words="Batches"),
        Entry(endpoint="console.list_transactions", words="Transactions"),
        Entry(endpoint="console.list_held", words="Held"),
        Entry(endpoint="console.list_reversals", words="Reversals"),
        Entry(endpoint="console.statement", words="Statement"),
        Entry(endpoint="console.sandbox", words="Sandbox", role=members.ADMIN, of_sandbox=True),
    ),
    (
        Entry(endpoint="console.keys", words="Keys", role=members.ADMIN, of_both_modes=True),
        Entry(endpoint="console.list_requests", words="Requests"),
        Entry(endpoint="console.webhooks", words="Webhooks", role=members.ADMIN),
        Entry(endpoint="console.members", words="Members", role=members.ADMIN, of_both_modes=True),
        Entry(endpoint="console.settings", words="Settings", role=members.ADMIN, of_both_modes=True),
        Entry(endpoint="console.list_activity", words="Activity", of_both_modes=True),
        Entry(endpoint="console.account", words="Your account", of_both_modes=True),
    ),
)
_ENTRIES = {entry.endpoint: entry for group in NAVIGATION for entry in group}
_BY_WORD = {entry.words.lower().removeprefix("your "): entry.endpoint for entry in _ENTRIES.values()}
_OF_BOTH_MODES = {endpoint for endpoint, entry in _ENTRIES.items() if entry.of_both_modes}
_OF_SANDBOX = {endpoint for endpoint, entry in _ENTRIES.items() if entry.of_sandbox}
_HOME = "console.overview"


def add_to(app: Flask) -> None:
    """Give all templates their filters and names."""
    own = (setting_text, moment, recipient_number)
    for written in (numbers.points, numbers.size, numbers.counted, texts.with_name, *own):
        app.add_template_filter(written)
    app.context_processor(_names)


def moment(when: datetime | str) -> str:
    """Write a time as the clocks of the member show it. A text is a time as the interface writes it."""
    return moment_in(current_zone(), parse_timestamp(when) if isinstance(when, str) else when)


def recipient_number(transaction_id: int) -> int:
    """Return the place of a transaction's recipient in its batch, from 1."""
    return batch_and_position(transaction_id)[1] + 1


def _here() -> str:
    """Return the page of the navigation to which this page belongs, by the words of its route."""
    words = ("" if request.url_rule is None else request.url_rule.rule).split("/")[3:]  # Behind `/console/<mode>`.
    if not words:
        return request.endpoint or ""
    if words[0] == "send" and words[-1] in ("outcome", "approval", "cancel", "move", "take-back"):
        return "console.lists"
    return _BY_WORD.get({"hold": "held", "recipient": "transactions"}.get(words[-1], words[0]), "")


def _names() -> dict[str, Any]:
    member: members.Member | None = g.get("member")
    mode = g.get("mode", LIVE)
    groups = [
        [entry for entry in group if member and member.may(entry.role) and (mode == SANDBOX or not entry.of_sandbox)]
        for group in NAVIGATION
    ]
    here = _here()
    arguments = request.view_args or {}
    # What the switch of the modes leads to: the same page if both modes have it, else the list that it belongs to.
    above: tuple[str, dict[str, Any]] = (here, {}) if here in _ENTRIES and here not in _OF_SANDBOX else (_HOME, {})
    is_in_both = request.method == "GET" and above[0] == here and (here in _OF_BOTH_MODES or not arguments)
    ahead = g.get("sandbox_ahead")
    return {
        "member": member,
        "organization_name": g.get("organization_name"),
        "must_enrol": g.get("must_enrol", False),
        "has_others": g.get("has_others", False),
        "mode": mode,
        "sandbox_now": datetime.now(UTC) + ahead if ahead and mode == SANDBOX else None,
        "time_zone": current_zone(),
        "sends_mail": settings().sends_mail,
        "to_answer": f"{TO_ANSWER_MAX - 1}+" if (count := g.get("to_answer", 0)) == TO_ANSWER_MAX else count,
        "csrf_token": generate_csrf,
        "faults_of": faults_of,
        "new_form_id": new_form_id,
        "navigation": groups,
        "here": here,
        "of_both_modes": here in _OF_BOTH_MODES,
        "page_in_mode": (request.endpoint, arguments) if is_in_both else above,
    }
