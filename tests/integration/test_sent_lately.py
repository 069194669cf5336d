"""`POST /v1/points/sent-before`: who of a send's recipients was sent the same within 30 days."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.batches import sent_lately
from app.postgres import locks
from app.postgres.database import transaction
from app.web.application import create_app
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database", "broker")

ANN, BOB, CY, DEE = "ann@example.com", "bob@example.com", "cy@example.com", "dee@example.com"
NOBODY: dict[str, Any] = {
    "recipients": 0,
    "same": 0,
    "same_label": 0,
    "same_amount": 0,
    "batch_count": 0,
    "batches": [],
}


@pytest.fixture
def organization_id() -> int:
    return books.make_organization(10_000, sandbox_balance=1_000)


@pytest.fixture
def client() -> FlaskClient:
    return create_app().test_client()


def ask(client: FlaskClient, organization_id: int, body: dict[str, Any], **headers: str) -> TestResponse:
    key = books.make_live_key(organization_id)
    return client.post("/v1/points/sent-before", json=body, headers={"Authorization": f"Bearer {key}", **headers})


def told(client: FlaskClient, organization_id: int, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    answer = ask(client, organization_id, body, **headers)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.get_json()["data"]
    assert (data.pop("days"), data.pop("complete")) == (30, True)
    return data


def _issued(organization_id: int, emails: list[str], amount: int | list[int], **more: Any) -> int:
    batch_id = books.queue_batch(organization_id, emails, amount, **more)
    books.drain_all(organization_id)
    return batch_id


def test_each_recipient_is_counted_once_by_what_was_most_alike_in_any_order_and_any_spelling(
    client: FlaskClient, organization_id: int
) -> None:
    old = _issued(organization_id, [ANN, BOB, CY], [5, 5, 7], label="Spring")
    other = _issued(organization_id, [DEE, ANN], 5, label="May")
    _issued(organization_id, [DEE], 6, label="May")
    body = {"recipients": ["new@example.com", DEE, "CY@Example.COM", "Bob@example.com", ANN], "amount": 5}
    counts = {"recipients": 4, "same": 2, "same_label": 1, "same_amount": 1, "batch_count": 2}
    assert told(client, organization_id, body | {"label": "Spring"}) == {
        **counts,
        "batches": [
            {"batch_id": old, "recipients": 3, "issued_at": _issued_at(organization_id, old)},
            {"batch_id": other, "recipients": 2, "issued_at": _issued_at(organization_id, other)},
        ],
    }
    items = [{"email": CY, "amount": 7, "label": "Spring"}, {"email": ANN, "label": "May"}, {"email": BOB, "amount": 9}]
    counts = told(client, organization_id, {"items": items, "amount": 5})
    assert (counts["same"], counts["same_label"], counts["same_amount"]) == (2, 0, 0)


def _issued_at(organization_id: int, batch_id: int) -> str:
    issued_at = books.read_batch(organization_id, batch_id)[0].issued_at
    assert issued_at is not None
    return f"{issued_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def test_no_label_is_the_same_as_no_label_for_equal_points_only(client: FlaskClient, organization_id: int) -> None:
    _issued(organization_id, [ANN, BOB], [5, 6])
    assert told(client, organization_id, {"recipients": [ANN, BOB], "amount": 5})["same"] == 1
    labelled = told(client, organization_id, {"recipients": [ANN, BOB], "amount": 5, "label": "Spring"})
    assert (labelled["same"], labelled["same_amount"], labelled["recipients"]) == (0, 1, 1)


def test_what_waits_counts_and_what_was_not_paid_or_is_not_ours_does_not(
    client: FlaskClient, organization_id: int
) -> None:
    body = {"recipients": [ANN, BOB], "amount": 5, "label": "Spring"}
    assert told(client, organization_id, body) == NOBODY
    other = books.make_organization(100, name="Other")
    _issued(other, [ANN, BOB], 5, label="Spring")
    _issued(organization_id, [ANN, BOB], 5, label="Spring", sandbox=True)
    _issued(organization_id, [ANN, BOB], 9_999, label="Spring")  # Pays the first only.
    assert told(client, organization_id, body)["same_label"] == 1
    books.refill_now(organization_id, 10_000)
    taken = _issued(organization_id, [BOB], 5, label="Spring")
    assert told(client, organization_id, body)["same"] == 1
    books.reverse_now(organization_id, batch_id=taken)
    assert told(client, organization_id, body)["same"] == 0
    later = books.queue_batch(organization_id, [BOB], 5, send_at=datetime.now(UTC) + timedelta(days=40), label="Spring")
    queued = books.queue_batch(organization_id, [ANN], 5, label="Spring")
    found = told(client, organization_id, body)
    assert (found["same"], found["recipients"]) == (2, 2)
    waiting = {batch["batch_id"]: batch["issued_at"] for batch in found["batches"][:2]}
    assert waiting == {queued: None, later: None}
    books.rewrite(
        f"UPDATE batches SET status = 'cancelled', cancelled_at = now() WHERE id IN ({queued}, {later})",
        "UPDATE batches SET issued_at = issued_at - interval '721 hours'",
        books.DIGEST_BATCHES,
    )
    assert told(client, organization_id, body) == NOBODY


def test_two_references_that_differ_are_two_payments(client: FlaskClient, organization_id: int) -> None:
    _issued(organization_id, [ANN, BOB, CY], 5, references=["order-1", "order-2", None])
    items = [
        {"email": ANN, "reference": "order-1"},
        {"email": BOB, "reference": "order-9"},
        {"email": CY, "reference": "order-3"},
    ]
    assert told(client, organization_id, {"items": items, "amount": 5})["same"] == 2


def test_a_batch_that_the_send_would_be_answered_with_does_not_count(client: FlaskClient, organization_id: int) -> None:
    _issued(organization_id, [ANN], 5, idempotency_key="run-1")
    body = {"recipient": ANN, "amount": 5}
    assert told(client, organization_id, body, **{"Idempotency-Key": "run-1"}) == NOBODY
    assert told(client, organization_id, body, **{"Idempotency-Key": "run-2"})["same"] == 1
    assert ask(client, organization_id, body, **{"Idempotency-Key": "a b"}).status_code == 400
    assert ask(client, organization_id, {"recipient": "x"}).get_json()["errors"].keys() == {"amount", "recipient"}


def test_the_newest_are_compared_where_there_are_too_many_and_it_says_so(
    client: FlaskClient, organization_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for email in (ANN, BOB, CY):
        _issued(organization_id, [email], 5)
    monkeypatch.setattr(sent_lately, "LOOKED_AT_MAX", 12)  # Two of such batches.
    data = ask(client, organization_id, {"recipients": [ANN, BOB, CY], "amount": 5}).get_json()["data"]
    assert (data["same"], data["complete"]) == (2, False)


def test_an_organization_has_one_such_call_at_a_time(client: FlaskClient, organization_id: int) -> None:
    with transaction() as connection:
        assert locks.try_to_take(connection, locks.Kind.SENT_LATELY, organization_id)
        answer = ask(client, organization_id, {"recipient": ANN, "amount": 5})
        assert (answer.status_code, answer.get_json()["additional_data"]) == (503, {"code": "comparing"})
        assert answer.headers["Retry-After"]
        assert told(client, books.make_organization(name="Other"), {"recipient": ANN, "amount": 5}) == NOBODY
