"""What every list, page, export, statement, event and entry says about the batch of a story is what the model says."""

import csv
import html
import re
from io import StringIO
from typing import Any

from tests.contract.calls import success
from tests.contract.stories import ACCOUNT, ERASED, GONE, HELD_FIRST, OPENING, Story
from tests.deadline import until

_FLAGS = {"unpaid": (False, False), "held": (True, False), "credited": (True, True)}


def agrees(story: Story, *, is_over: bool) -> None:
    """Require that all who tell of the batch tell the same; an export takes a command, so it is made in the end."""
    batch = story.reader.batch(story.batch_id)
    assert batch["status"] == story.status
    _batch(story, batch)
    _recipients(story)
    if story.status == "issued":
        _transactions(story, batch["transactions"])
    if story.status == "issued" and is_over:
        _export(story)
    _books(story)
    _events(story)
    _entries(story)
    _pages(story)


def _batch(story: Story, batch: dict[str, Any]) -> None:
    [listed] = story.reader.listed("batches")
    assert {**batch, "transactions": None} == {**listed, "transactions": None}
    is_final = story.status in ("issued", "refused", "rejected")
    assert (batch["final"], batch["amount"]) == (is_final, story.debited if story.status == "issued" else None)
    states = [each.state for each in story.recipients]
    whole = sum(each.reversed == each.amount for each in story.recipients)
    counts = {
        "recipients": len(states),
        "debited": len(states) - states.count("unpaid"),
        "credited": states.count("credited"),
        "held": states.count("held"),
        "unpaid": states.count("unpaid"),
        "reversed": whole,
    }
    assert batch["counts"] == (counts if story.status == "issued" else None)
    for status in ("issued", "awaiting_approval", "scheduled", "refused", "rejected"):
        assert len(story.reader.listed("batches", status=status)) == (status == story.status), status


def _recipients(story: Story) -> None:
    rows = story.reader.listed(f"batches/{story.batch_id}/recipients", limit=2)
    names = ("email", "amount", "label", "reference")
    expected = [{name: getattr(each, name) for name in names} for each in story.recipients]
    if story.recipients[GONE].email == story.gone and story.recipients[GONE].state in (None, "unpaid"):
        expected[GONE]["amount"] = 0  # Whoever approves sees that it is for nobody.
    assert rows == expected


def _transactions(story: Story, transactions: list[dict[str, Any]]) -> None:
    for row, each in zip(transactions, story.recipients, strict=True):
        names = ("email", "amount", "label", "reference", "state", "reversed")
        assert {name: row[name] for name in names} == {name: getattr(each, name) for name in names}
        if each.state in _FLAGS:
            assert (row["debited"], row["credited"]) == _FLAGS[each.state]
        assert success(story.reader.get(f"/v1/transactions/{row['id']}")) == row
        if each.email != story.gone:  # That is no address to look for.
            assert story.reader.listed("transactions", email=each.email) == [row]
        if each.reference is not None:
            assert story.reader.listed("transactions", reference=each.reference) == [row]
    assert story.reader.listed("transactions", batch=story.batch_id) == transactions[::-1]
    assert story.reader.listed("transactions", limit=2) == transactions[::-1]
    for state in ("credited", "held", "unpaid", "reversed", "returned"):
        of_state = [row for row in transactions[::-1] if row["state"] == state]
        assert story.reader.listed("transactions", state=state) == of_state


def _export(story: Story) -> None:
    mode = ["--sandbox"] if story.sandbox else []
    done = story.service.command("export", "transactions", str(story.organization.id), *mode)
    *rows, total = csv.DictReader(StringIO(done.stdout))
    said = [(row["email"], row["amount"], row["points"], row["reversed"], row["state"]) for row in rows]
    expected = [
        (each.email, str(each.amount), str(each.debited), str(each.reversed), each.state) for each in story.recipients
    ]
    assert said == expected, (said, expected)
    assert (total["points"], total["reversed"]) == (str(story.debited), str(story.given_back))


def _books(story: Story) -> None:
    organization = story.reader.get("/v1/organization").json()
    balance = OPENING - story.debited + story.given_back
    assert organization["data"]["balance"] == balance
    scheduled = organization["additional_data"]["scheduled"]
    expected = (1, story.payable) if story.status == "scheduled" else (0, 0)
    assert (scheduled["batches"], scheduled["amount"]) == expected
    assert len(story.reader.listed("reversals")) == story.reversals
    days = {"from": f"{story.began:%Y-%m-%d}", "to": f"{story.now:%Y-%m-%d}"}
    total = success(story.reader.get("/v1/statement", **days))["total"]
    assert (total["debited"], total["reversed"] + total["returned"]) == (story.debited, story.given_back)
    assert total["closing_balance"] == balance
    assert total["unpaid"] == sum(each.state == "unpaid" for each in story.recipients)


def _events(story: Story) -> None:
    types = "batch.*,transaction.*,reversal.*"

    def told() -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = success(story.reader.get("/v1/events", types=types))["events"]
        return events

    until(lambda: len(told()) >= len(story.events), every_s=0.1)
    events = told()
    assert [event["type"] for event in events] == story.events
    for event in events:
        if "batch" in event["data"]:
            assert event["data"]["batch"]["batch_id"] == story.batch_id
        assert event["sandbox"] is story.sandbox


def _entries(story: Story) -> None:
    """What a user got is what the batch says; the sandbox's users have no entries."""
    if story.sandbox or story.status != "issued":
        return
    for each in story.recipients[ACCOUNT], story.recipients[HELD_FIRST]:
        if each.state != "credited":
            continue
        [user] = success(story.platform.get("/v1/platform/users", email=each.email))["users"]
        expected = each.debited - each.reversed
        assert user["balance"] == expected
        assert sum(entry["amount"] for entry in story.platform.entries(user["id"])) == expected


def _pages(story: Story) -> None:
    """The pages show what there is, and an address that was erased nowhere."""
    see = story.browser
    pages = {
        name: see.get(path).text
        for name, path in (
            ("the batch", f"/batches/{story.batch_id}"),
            ("batches", "/batches"),
            ("transactions", "/transactions"),
            ("held", "/held"),
            ("lists", "/lists"),
            ("overview", ""),
            ("statement", "/statement"),
            *((("take back", f"/batches/{story.batch_id}/take-back"),) if story.status == "issued" else ()),
        )
    }
    if ERASED in story and story.recipients[GONE].email == story.gone:
        assert [name for name, page in pages.items() if story.erased in page] == []
    for each in story.recipients:
        assert each.email in pages["the batch"], each
        if story.status == "issued":
            assert each.email in pages["transactions"]
            assert (each.email in pages["held"]) == (each.state == "held")
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", pages["the batch"])).split())
    if story.status == "issued":
        assert f"{story.debited}" in words.replace(",", "").replace("\u202f", "")
