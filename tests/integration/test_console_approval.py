"""A second pair of eyes in the console: who sees what awaits an approval, and who answers it."""

import pytest
from flask import Flask

from app import organizations
from tests.integration import books
from tests.integration.console_lists import checked, confirm, value
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker", "balanced")

_LIST = "email,amount\nada@example.com,30\nbob@example.com,71\n"


@pytest.fixture
def organization_id() -> int:
    """Make an organization that approves what is of more than 100 points."""
    made = books.make_organization(1_000, sandbox_balance=500)
    books.run(organizations.change, made, {"approval_above": 100})
    return made


def _send(of: Visitor) -> str:
    """Send a list of 101 points; return the path of its batch."""
    path = checked(of, _LIST, label="Spring")
    page = words_of(of.get(f"{path}/confirm"))
    assert "It awaits an approval by somebody other than you , because it is of more than 100 points." in page
    answer = confirm(of, path)
    assert answer.status_code == 303, answer.text
    outcome = words_of(of.get(answer.location))
    assert "Awaiting approval" in outcome
    return f"/batches/{value('SELECT max(id) FROM batches')}"


def test_a_list_above_the_limit_is_issued_once_an_approver_who_has_not_sent_it_says_so(
    app: Flask, organization_id: int
) -> None:
    ann, bo, cy = (visitor(app, organization_id, role) for role in ("sender", "approver", "viewer"))
    batch = _send(ann)
    for one, words in ((ann, "Look at it"), (cy, "Look at it"), (bo, "Approve or reject it")):
        assert f"1 batch awaits an approval. Nothing is debited before. {words}" in words_of(one.get())
        assert batch in one.get("/batches?status=awaiting_approval").text
    for one in (ann, cy):
        assert "awaiting approval" in words_of(one.get(batch))
        assert "Approve or reject it" not in one.get(batch).text
    assert "Approve or reject it" in bo.get(batch).text
    page = words_of(bo.get(f"{batch}/approval"))
    assert "Points to issue 101 to 2 recipients Balance now 1,000 Sent by Ann Sender" in page
    assert "ada@example.com 30 bob@example.com 71" in page
    answer = bo.post(f"{batch}/approve", of=f"{batch}/approval")
    assert answer.status_code == 303
    assert "is approved." in words_of(bo.get(answer.location))
    assert bo.post(f"{batch}/approve").status_code == 303, "again, it changes nothing"
    books.drain_all(organization_id)
    shown = words_of(ann.get(batch))
    assert "issued at" in shown
    assert "by Ann Approver" in shown
    assert books.balance_of(organization_id) == 899
    activity = words_of(cy.get("/activity"))
    assert activity.count("Approved live batch") == 1
    assert "101 points to 2 recipients, awaiting an approval" in activity
    assert bo.get(f"{batch}/approval").location.endswith(batch)


def test_a_batch_is_rejected_with_a_reason_which_its_sender_sees(app: Flask, organization_id: int) -> None:
    ann, mary = visitor(app, organization_id, "sender"), visitor(app, organization_id, "admin")
    batch = _send(ann)
    form = f"{batch}/approval"
    for bad, sentence in (("", "Enter a reason"), ("x" * 256, "at most 255 characters")):
        answer = mary.post(f"{batch}/reject", of=form, reason=bad)
        assert answer.status_code == 400
        assert sentence in answer.text
    assert mary.post(f"{batch}/reject", of=form, reason="The wrong list").status_code == 303
    assert "rejected : The wrong list. Nobody was debited." in words_of(ann.get(batch))
    assert "Rejected live batch" in words_of(ann.get("/activity"))
    assert "awaits an approval" not in words_of(mary.get())
    late = mary.post(f"{batch}/approve", of="/members")
    assert "it was rejected" in words_of(mary.get(late.location))
    assert books.balance_of(organization_id) == 1_000
    [token] = books.values("SELECT token FROM uploads WHERE sent_at IS NOT NULL")
    assert "This list was rejected: nobody was debited." in words_of(ann.get(f"/send/{token}/outcome"))
    assert "rejected" in words_of(ann.get("/lists"))
    again = checked(ann, _LIST, label="Spring")
    assert "sent to before" not in words_of(ann.get(again))
    assert 'name="again"' not in ann.get(f"{again}/confirm").text
    assert confirm(ann, again).status_code == 303
    assert "sent to before" in words_of(ann.get(checked(ann, _LIST, label="Spring"))), "that one awaits an answer"


def test_nobody_approves_what_he_has_sent_whatever_the_role(app: Flask, organization_id: int) -> None:
    mary = visitor(app, organization_id, "admin")
    batch = _send(mary)
    assert f"{batch}/approve" not in mary.get(f"{batch}/approval").text
    for verb in ("approve", "reject"):
        told = mary.post(f"{batch}/{verb}", of="/members", reason="x")
        assert "Whoever has sent a batch cannot" in words_of(mary.get(told.location))
    cancelled = mary.post(f"{batch}/cancel", of=f"{batch}/cancel")
    assert "is cancelled: nobody was debited" in words_of(mary.get(cancelled.location))
