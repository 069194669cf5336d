"""What callers do over HTTP, and what the model makes of each answer: they are compared in full."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from app.values.timestamps import timestamp
from tests.e2e.state_machine.model import Batch, Body, Model, Request
from tests.e2e.state_machine.operators import Key

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")


@dataclass(frozen=True)
class Used:
    """A send under an idempotency key, and the 201 it got."""

    key: Key
    idempotency_key: str
    request: Request
    content: bytes


class Callers:
    """The callers of one run."""

    def __init__(self, client: httpx.Client, model: Model) -> None:
        self.client, self.model = client, model

    def call(self, method: str, path: str, key: Key, **request: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key.text}", **request.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **request)

    def send(self, key: Key, request: Request, idempotency_key: str | None = None) -> httpx.Response:
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return self.call("POST", "/v1/points/send", key, json=_body(request), headers=headers)

    def expect_issued(self, answer: httpx.Response, key: Key, request: Request, *, days: int | None = None) -> int:
        """Compare a 201 with what the model issues, held for so many days; return the id of the batch.

        Ids and the moment are the service's to choose.
        """
        assert answer.status_code == 201, answer.text
        assert "Idempotency-Replayed" not in answer.headers
        document = answer.json()
        batch = self.model.send(key.organization, request, sandbox=key.sandbox)
        _take_ids_and_moment(batch, document["data"]["transactions"], days)
        batch_id: int = document["additional_data"]["batch_id"]
        assert document == _success(batch.data, batch_id=batch_id)
        assert batch_id not in self.model.batches
        assert not set(batch.transaction_ids) & {
            id_ for other in self.model.batches.values() for id_ in other.transaction_ids
        }
        self.model.batches[batch_id] = batch
        return batch_id

    def verify(self, key: Key, request: Request) -> None:
        validated, additions = self.model.verify(key.organization, request, sandbox=key.sandbox)
        answer = self.call("POST", "/v1/points/verify", key, json=_body(request))
        assert answer.status_code == 200, answer.text
        sentence = answer.json()["data"]["error"]
        assert (sentence is None) is validated
        assert answer.json() == _success({"validated": validated, "error": sentence}, **additions)

    def compare_batch(self, batch_id: int, key: Key) -> None:
        batch = self.model.batches[batch_id]
        data = self.call("GET", f"/v1/batches/{batch_id}", key).json()["data"]
        first = batch.data["transactions"][0]
        assert _TIMESTAMP.match(data.pop("created_at"))
        del (
            data["idempotency_key"],
            data["api_key_id"],
        )  # The model knows a batch by its answer, and not by what it was sent with.
        about = {"batch_id": batch_id, "status": "issued", "final": True, "refusal": None, "sender": None}
        about |= {"metadata": None, "send_at": None, "approval": None}
        about |= {"label": first["label"], "counts": _counts(batch), "issued_at": first["created_at"]}
        assert data == about | batch.data

    def reverse(self, key: Key, batch_id: int, places: list[int] | None, points: int | None) -> None:
        """Take back a batch, or these of its transactions, and compare the 201 in full."""
        batch = self.model.batches[batch_id]
        all_places = list(range(len(batch.transaction_ids)))
        what: Body = {"batch": batch_id}
        if places is not None:
            what = {"transactions": [batch.transaction_ids[place] for place in places]}
        answer = self.call("POST", "/v1/points/reverse", key, json=what | {"amount": points, "reason": "x"})
        if batch.organization.is_disabled:
            expect_refused(answer, 403, "organization")
            return
        assert answer.status_code == 201, answer.text
        places = all_places if places is None else places
        taken = self.model.reverse(batch, places, points)
        rows = [batch.data["transactions"][place] for place in places]
        assert answer.json() == _success(
            {
                "reversal_id": answer.json()["data"]["reversal_id"],
                "transactions": [
                    {"id": row["id"], "email": row["email"], "amount": row["amount"], "reversed": part, "code": code}
                    for row, (part, code) in zip(rows, taken, strict=True)
                ],
                "amount": sum(part for part, _ in taken),
                "current_balance": batch.organization.purses[batch.sandbox].balance,
            }
        )

    def schedule_and_cancel(self, key: Key, request: Request) -> None:
        """Send for later and call it off: nothing has come of it."""
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        answer = self.call("POST", "/v1/points/send", key, json=_body(request) | {"send_at": tomorrow})
        if key.organization.refusal is not None:
            expect_refused(answer, 403, "organization")
            return
        batch_id = answer.json()["data"]["batch_id"]
        expect_refused(
            self.call("POST", "/v1/points/reverse", key, json={"batch": batch_id, "reason": "x"}), 409, "batch"
        )
        for _ in range(2):
            cancelled = self.call("POST", f"/v1/batches/{batch_id}/cancel", key).json()["data"]
            assert (cancelled["status"], cancelled["transactions"]) == ("cancelled", None)

    def compare_organization(self, key: Key) -> None:
        answer = self.call("GET", "/v1/organization", key)
        nothing = {"batches": 0, "amount": 0, "next_at": None}
        limits = {"recipients": 10_000, "amount": 1_000_000_000, "body_bytes": 8_388_608}
        expected = _success(key.organization.body(sandbox=key.sandbox), scheduled=nothing, limits=limits)
        assert answer.json() == expected


def expect_replayed(answer: httpx.Response, used: Used) -> None:
    """Require the 201 of the first call, to the byte."""
    assert answer.status_code == 201, answer.text
    assert answer.headers["Idempotency-Replayed"] == "true"
    assert answer.content == used.content


def expect_refused(answer: httpx.Response, status: int, field: str) -> None:
    assert answer.status_code == status, answer.text
    sentences = answer.json()["errors"]
    assert list(sentences) == [field]
    code = None if status == 400 else {"code": answer.json()["additional_data"]["code"]}
    assert answer.json() == {"success": False, "data": None, "errors": sentences, "additional_data": code}


def _success(data: Body, **additional: object) -> Body:
    return {"success": True, "data": data, "errors": None, "additional_data": {"version": "1.0", **additional}}


def _counts(batch: Batch) -> Body:
    rows = batch.data["transactions"]
    states = [row["state"] for row in rows]
    counted = {state: states.count(state) for state in ("credited", "held", "unpaid", "reversed")}
    counted["reversed"] += states.count("returned")
    return {"recipients": len(rows), "debited": len(rows) - counted["unpaid"], **counted}


def _take_ids_and_moment(batch: Batch, answered: list[Body], days: int | None) -> None:
    """Give the model's batch what only the service knows: ids that rise, one moment for all of them, and its end."""
    ids = [transaction["id"] for transaction in answered]
    assert ids == sorted(set(ids))
    moment = answered[0]["created_at"]
    assert _TIMESTAMP.match(moment)
    for transaction, id_ in zip(batch.data["transactions"], ids, strict=True):
        transaction |= {"id": id_, "created_at": moment}
        if days is not None and transaction["state"] == "held":
            transaction["held_until"] = timestamp(datetime.fromisoformat(moment) + timedelta(days=days))


def _body(request: Request) -> Body:
    """Write a request as JSON: a list of one as `recipient`, and what is at its default left out."""
    one = len(request.recipients) == 1
    body: Body = {"recipient": request.recipients[0]} if one else {"recipients": request.recipients}
    if request.own_amounts is not None:
        columns = zip(request.recipients, request.own_amounts, request.references, strict=False)
        body = {"items": [{"email": email, "amount": own, "reference": name} for email, own, name in columns]}
    body["amount"] = request.amount
    if request.atomic:
        body["atomic"] = True
    if request.label is not None:
        body["label"] = request.label
    return body
