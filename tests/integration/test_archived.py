"""What reads and takes back once a range is in the archive: 410 says since when, and what was summed stays."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from flask import Flask

from app.archive import dropping
from app.cli.archive import archive as archive_command
from app.errors import Refused
from app.exports.columns import BATCHES, JSONL, TRANSACTIONS
from app.exports.export import begin
from app.pages.filters import Filters
from app.platform import keys as platform_keys
from app.postgres.database import transaction
from app.reversals.read import forget_idempotency_keys
from app.values.ids import POSITIONS
from app.web.application import create_app
from tests.integration import archiving, books
from tests.integration.archiving import ALWAYS, SIZE, archive, finish
from tests.integration.visitors import visitor, words_of

pytestmark = pytest.mark.usefixtures("small_partitions")

ANN, BOB = "ann@example.com", "bob@example.com"
SINCE = "was archived on"

Call = Callable[..., Any]


@pytest.fixture
def app(small_partitions: None) -> Flask:
    return create_app()


class _Story:
    """An organization with a range that may go, and batches behind it that stay."""

    def __init__(self, app: Flask) -> None:
        self.acme, self.other = books.make_organization(1_000), books.make_organization(1_000)
        [self.ann] = books.make_users(ANN)
        self.whole = books.issue_now(self.acme, [ANN, BOB], 10)
        references = ["one", "two"]
        self.items = books.queue_batch(self.acme, [ANN, BOB], [3, 4], references=references, label="Spring")
        books.drain_all(self.acme)
        self.short = books.issue_now(self.acme, [ANN, BOB], 600)
        self.reversal = books.reverse_now(self.acme, batch_id=self.whole, amount=4)
        first_and_second = [self.items * POSITIONS, self.whole * POSITIONS]
        books.reverse_now(self.acme, transaction_ids=first_and_second, idempotency_key="twice")
        books.make_users(BOB)
        archiving.draw_ids_to(SIZE)
        self.fresh = books.issue_now(self.acme, [ANN, BOB], 5)
        with transaction() as connection:
            _, platform = platform_keys.create(connection, "Support")
        today = datetime.now(UTC).date()
        self._statement = f"statement?from={today - timedelta(days=1)}&to={today}"
        self.key = books.make_live_key(self.acme)
        self._client, self._keys = app.test_client(), {"acme": self.key, "platform": platform}
        self._keys["other"] = books.make_live_key(self.other)

    def call(self, method: str, path: str, status: int = 200, *, by: str = "acme", **body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self._keys[by]}"}
        answer = self._client.open(f"/v1/{path}", method=method, json=body or None, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.get_json() if status >= 400 else answer.get_json()["data"]

    def gone(self, method: str, path: str, batch_id: int, **body: Any) -> None:
        """Require that a call is answered 410, with the batch and its day."""
        answer = self.call(method, path, 410, **body)
        assert answer["additional_data"] == {"code": "archived"}
        [sentence] = answer["errors"]["batch"]
        assert sentence.startswith(f"The batch {batch_id} {SINCE} {datetime.now(UTC):%Y-}"), sentence

    def stays(self) -> dict[str, Any]:
        """Return what is the same before and after."""
        batches = self.call("GET", "batches")["batches"]
        found = {path: self.call("GET", path) for path in ("reversals", "organization", self._statement)}
        entries = self.call("GET", f"platform/users/{self.ann}/entries", by="platform")["entries"]
        of_entries = [(one["type"], one["amount"], one["transaction_id"], one["created_at"]) for one in entries]
        return found | {"batches": batches, "entries": of_entries}


@pytest.fixture
def story(app: Flask) -> _Story:
    told = _Story(app)
    with transaction() as connection:
        forget_idempotency_keys(connection, older_than_days=-1, at_most=9)
    finish()
    return told


def test_what_is_archived_answers_410_and_what_was_summed_stays(story: _Story, app: Flask, tmp_path: Path) -> None:
    before = story.stays()
    assert len(before["batches"]) == 4
    assert archive(tmp_path)["archived"], "the range went"
    assert story.stays() == before
    whole, items, first = story.whole, story.items, story.whole * POSITIONS
    later = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    for method, path, batch_id, body in (
        ("GET", f"batches/{whole}", whole, {}),
        ("PATCH", f"batches/{whole}", whole, {"send_at": later}),
        ("POST", f"batches/{whole}/cancel", whole, {}),
        ("GET", f"transactions/{first + 1}", whole, {}),
        ("GET", f"transactions?batch={whole}", whole, {}),
        ("POST", f"transactions/{first}/extend", whole, {"held_until": later}),
        ("GET", f"reversals/{story.reversal}", whole, {}),
        ("POST", "points/reverse", whole, {"batch": whole, "reason": "again"}),
        ("POST", "points/reverse", whole, {"transactions": [items * POSITIONS, first + 1], "reason": "again"}),
        ("POST", "points/reverse/verify", items, {"batch": items, "reason": "again"}),
    ):
        story.gone(method, path, batch_id, **body)
    for path in (f"transactions/{first + 2}", f"batches/{SIZE * 9}", f"transactions/{2**63}", f"batches/{2**63}"):
        assert story.call("GET", path, 404)["additional_data"] == {"code": "not_found"}
    for path in (f"batches/{whole}", f"transactions/{first}", f"reversals/{story.reversal}"):
        story.call("GET", path, 404, by="other")
    story.call("POST", f"transactions/{2**63}/extend", 404, held_until=later)
    for asked in ({"batch": 2**63}, {"transactions": [2**63]}):
        assert app.test_client().post(
            "/v1/points/reverse", json={**asked, "reason": "again"}, headers={"Authorization": f"Bearer {story.key}"}
        ).status_code in (400, 404)
    missing = story.call("POST", "points/reverse", 400, transactions=[first, first + 2], reason="again")
    assert list(missing["errors"]) == ["transactions.1"]
    assert story.call("GET", f"batches/{story.fresh}")["batch_id"] == story.fresh
    shown = story.call("GET", "transactions")["transactions"]
    assert {one["id"] // POSITIONS for one in shown} == {story.fresh}
    assert story.call("GET", "transactions?reference=one")["transactions"] == []
    assert [one["batch_id"] for one in story.call("GET", f"batches?email={ANN}")["batches"]] == [story.fresh]
    assert books.breaches() == []


def test_an_export_leaves_archived_transactions_out_and_has_the_heads(story: _Story, tmp_path: Path) -> None:
    filters = Filters(organization_id=story.acme, sandbox=False)
    heads = b"".join(begin(BATCHES, JSONL, filters).content())
    archive(tmp_path)
    assert b"".join(begin(BATCHES, JSONL, filters).content()) == heads
    lines = [json.loads(line) for line in b"".join(begin(TRANSACTIONS, JSONL, filters).content()).splitlines()]
    assert {line["batch_id"] for line in lines[:-1]} == {story.fresh}
    gone_on = begin(TRANSACTIONS, JSONL, filters, after=story.items * POSITIONS)
    assert len(b"".join(gone_on.content()).splitlines()) == len(lines)


def test_a_range_on_its_way_is_read_and_no_longer_taken_back_from(story: _Story, tmp_path: Path) -> None:
    accepted = books.queue_reversal(story.acme, batch_id=story.short)
    books.execute(f"INSERT INTO archived_ranges (first_batch_id, end_batch_id) VALUES (0, {SIZE})")
    before = story.stays()
    answer = story.call("POST", "points/reverse", 410, batch=story.whole, reason="again")
    assert "is being archived since" in answer["errors"]["batch"][0]
    assert len(story.call("GET", f"batches/{story.whole}")["transactions"]) == 2
    books.drain_all(story.acme)
    refused = story.call("GET", f"reversals/{accepted}")
    assert (refused["status"], refused["refusal"]) == ("refused", "archived")
    assert books.breaches() == []
    books.execute("DELETE FROM archived_ranges")
    finish()
    # Killed between the drop and the emptying of the batches, it has no transaction and keeps its recipients.
    with patch.object(dropping, "empty_batches", side_effect=ArithmeticError), suppress(ArithmeticError):
        archive(tmp_path)
    assert archiving.rows() == []
    assert story.stays()["batches"] == before["batches"]
    story.gone("GET", f"batches/{story.whole}", story.whole)
    archive(tmp_path)
    assert story.stays()["batches"] == before["batches"]


def test_what_callers_may_still_ask_for_stays(app: Flask, tmp_path: Path) -> None:
    story = _Story(app)
    finish()
    assert archive_command.callback is not None
    latest = datetime.now(UTC) - timedelta(days=31)
    with pytest.raises(Refused, match=f"must be {latest:%Y-%m-%d} or earlier, but is {latest:%Y}"):
        archive(tmp_path, before=latest + timedelta(days=1), days=31)
    assert archive(tmp_path, before=latest, days=31)["archived"] == []
    [waits] = archive(tmp_path)["waiting"]
    assert waits["reason"].startswith("reversal "), "its key still answers"
    answer = app.test_client().post(
        "/v1/points/reverse",
        json={"transactions": [story.items * POSITIONS, story.whole * POSITIONS], "reason": "a mistake"},
        headers={"Authorization": f"Bearer {story.key}", "Idempotency-Key": "twice"},
    )
    assert (answer.status_code, answer.headers["Idempotency-Replayed"]) == (201, "true")


def test_the_console_says_that_a_batch_is_archived(story: _Story, app: Flask, tmp_path: Path) -> None:
    ann = visitor(app, story.acme, "sender")
    archive(tmp_path, before=ALWAYS)
    heads = words_of(ann.get("/batches"))
    assert heads.count("issued archived") == 3
    for path in ("", "/take-back", "/outcome.csv"):
        page = ann.get(f"/batches/{story.whole}{path}")
        assert page.status_code == 410
        assert f"The batch {story.whole} {SINCE}" in words_of(page)
    reversal = words_of(ann.get(f"/reversals/{story.reversal}"))
    assert "Points taken back 8" in reversal
    assert f"The batch {story.whole} {SINCE}" in reversal
