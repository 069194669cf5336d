"""The service against a naive model: any order of operators' and callers' actions, every answer compared in full."""

import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import httpx
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Engine

from app import api_keys, organizations, users
from app.ledger.claim import register
from app.ledger.refill import refill
from app.timestamps import timestamp
from tests.e2e.conftest import Service
from tests.e2e.model import Batch, Body, Model, Organization, Request, key_of

# Read here, because a test runs without any setting of the machine's.
_SOAK_STEPS = int(os.environ.get("POINTS_SOAK_STEPS", "0"))
_STEPS_EACH = 100
_STEPS = _SOAK_STEPS or 1_000

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")

# Few people, so that they meet often; written in many ways, so that they must be known again.
_PEOPLE = ("ada", "grace", "linus", "barbara", "ken", "Mixed.Case+tag", "o'neill", "дядя")
_DRESSES = (str, str.upper, str.title, lambda email: f" \t{email}\r\n")

_recipients = st.lists(st.sampled_from(_PEOPLE), min_size=1, max_size=5, unique=True)
_requests = st.builds(
    Request,
    st.tuples(_recipients, st.lists(st.sampled_from(_DRESSES), min_size=len(_PEOPLE), max_size=len(_PEOPLE))).map(
        lambda drawn: [dress(person) for person, dress in zip(*drawn, strict=False)]
    ),
    amount=st.sampled_from([1, 2, 3, 5, 7, 10, 20, 40, 1_000_000_000]),
    atomic=st.booleans(),
    label=st.one_of(
        st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=255)
    ),
)
_points = st.sampled_from([30, 1, 10, 50, 100, 200, 500])
_any_number = st.integers(0, 1_000)
"""Which of the things made so far is meant; it is taken modulo their number."""


@dataclass(frozen=True)
class Key:
    """An API key and what it stands for."""

    id: int
    text: str
    organization: Organization
    sandbox: bool


@dataclass(frozen=True)
class Used:
    """A send under an idempotency key, and the 201 it got."""

    key: Key
    idempotency_key: str
    request: Request
    batch_id: int
    content: bytes


class Points(RuleBasedStateMachine):
    """One organization or more, their keys, and a few people; nothing is shared with another run."""

    keys: Bundle[Key] = Bundle("keys")
    revoked: Bundle[Key] = Bundle("revoked")

    def __init__(self, client: httpx.Client, engine: Engine) -> None:
        super().__init__()
        self.client, self.engine = client, engine
        self.model = Model()
        self.organizations: list[Organization] = []
        self.used: list[Used] = []
        self.domain = f"{uuid.uuid4().hex}.example"

    # What operators do, as their commands do it.

    @initialize(target=keys, points=_points, sandbox=st.booleans())
    def first_organization(self, points: int, sandbox: bool) -> Key:
        return self._new_organization(points, sandbox=sandbox)

    @rule(target=keys, points=st.one_of(st.just(0), _points), sandbox=st.booleans())
    def create_organization(self, points: int, sandbox: bool) -> Key:
        return self._new_organization(points, sandbox=sandbox)

    @rule(which=_any_number, points=_points, sandbox=st.booleans())
    def refill(self, which: int, points: int, sandbox: bool) -> None:
        self._refill(_one_of(self.organizations, which), points, sandbox=sandbox)

    @rule(
        which=_any_number,
        flag=st.sampled_from(["is_disabled", "is_suspended"]),
        on=st.sampled_from([False, False, True]),
    )
    def disable_enable_suspend_or_resume(self, which: int, flag: str, on: bool) -> None:
        self._set_flags(_one_of(self.organizations, which), **{flag: on})

    @rule(target=keys, which=_any_number, sandbox=st.booleans())
    def make_another_key(self, which: int, sandbox: bool) -> Key:
        return self._new_key(_one_of(self.organizations, which), sandbox=sandbox)

    @rule(target=revoked, key=consumes(keys))
    def revoke_a_key(self, key: Key) -> Key:
        with self.engine.begin() as connection:
            api_keys.revoke(connection, key.id)
        return key

    @rule(person=st.sampled_from(_PEOPLE), dress=st.sampled_from(_DRESSES))
    def register_a_user(self, person: str, dress: Any) -> None:
        email = dress(self._address(person))
        with self.engine.begin() as connection:
            ids = register(connection, [users.new_user(email, person, "Lovelace")])
        assert bool(ids) == (key_of(email) not in self.model.users)
        if ids:
            self.model.register(email, {"id": ids[0], "first_name": person, "last_name": "Lovelace"})
        self._compare_user(key_of(email))

    # What callers do.

    @rule(key=keys, request=_requests)
    def verify(self, key: Key, request: Request) -> None:
        request = self._addressed(request)
        validated, additions = self.model.verify(key.organization, request, sandbox=key.sandbox)
        document = self._call("POST", "/v1/points/verify", key, json=_body(request)).json()
        assert document["success"] is True
        assert document["errors"] is None
        assert document["additional_data"] == {"version": "1.0", **additions}
        assert document["data"]["validated"] is validated
        assert (document["data"]["error"] is None) is validated

    @rule(key=keys, request=_requests, times=st.integers(1, 3))
    def send(self, key: Key, request: Request, times: int) -> None:
        """Without an idempotency key, equal sends are batches of their own."""
        request = self._addressed(request)
        for _ in range(times):
            answer = self._send(key, request, None)
            if key.organization.refusal is None:
                self._assert_issued(answer, self.model.send(key.organization, request, sandbox=key.sandbox))
            else:
                _assert_refused(answer, 403, "organization")

    @rule(key=keys, request=_requests, times=st.integers(1, 3))
    def send_under_an_idempotency_key(self, key: Key, request: Request, times: int) -> None:
        """With one, equal sends are one batch, and a refused one does not use the key up."""
        request, idempotency_key = self._addressed(request), uuid.uuid4().hex
        answer = self._send(key, request, idempotency_key)
        if key.organization.refusal is not None:
            _assert_refused(answer, 403, "organization")
            self._set_flags(key.organization, is_disabled=False, is_suspended=False)
            answer = self._send(key, request, idempotency_key)
        batch_id = self._assert_issued(answer, self.model.send(key.organization, request, sandbox=key.sandbox))
        self.used.append(Used(key, idempotency_key, request, batch_id, answer.content))
        for _ in range(times - 1):
            _assert_replayed(self._send(key, request, idempotency_key), self.used[-1])

    @precondition(lambda self: self.used)
    @rule(which=_any_number, dress=st.sampled_from(_DRESSES))
    def retry_with_the_same_body(self, which: int, dress: Any) -> None:
        used = _one_of(self.used, which)
        request = replace(used.request, recipients=[dress(email.strip()) for email in used.request.recipients])
        answer = self._send(self._valid_key_like(used.key), request, used.idempotency_key)
        _assert_replayed(answer, used)

    @precondition(lambda self: self.used)
    @rule(which=_any_number, request=_requests)
    def retry_with_another_body(self, which: int, request: Request) -> None:
        used, request = _one_of(self.used, which), self._addressed(request)
        if request.meaning == used.request.meaning:
            request = replace(request, amount=request.amount % 1_000_000_000 + 1)
        _assert_refused(
            self._send(self._valid_key_like(used.key), request, used.idempotency_key), 422, "idempotency_key"
        )

    @precondition(lambda self: self.model.batches)
    @rule(which=_any_number, key=keys)
    def read_a_batch(self, which: int, key: Key) -> None:
        batch_id, batch = _one_of(list(self.model.batches.items()), which)
        path = f"/v1/batches/{batch_id}"
        if (key.organization, key.sandbox) != (batch.organization, batch.sandbox):
            _assert_refused(self._call("GET", path, key), 404, "batch")
            key = self._new_key(batch.organization, sandbox=batch.sandbox)
        data = self._call("GET", path, key).json()["data"]
        issued_at = data["transactions"][0]["created_at"]
        assert _TIMESTAMP.match(data.pop("created_at"))
        assert data == {"batch_id": batch_id, "status": "issued", "issued_at": issued_at, **batch.data}

    @rule(key=keys)
    def read_the_organization(self, key: Key) -> None:
        document = self._call("GET", "/v1/organization", key).json()
        assert document == {
            "success": True,
            "data": key.organization.body(sandbox=key.sandbox),
            "errors": None,
            "additional_data": {"version": "1.0"},
        }

    @rule(key=revoked, request=_requests)
    def call_with_a_revoked_key(self, key: Key, request: Request) -> None:
        _assert_refused(self._send(key, self._addressed(request), None), 401, "authorization")
        _assert_refused(self._call("GET", "/v1/organization", key), 401, "authorization")

    def teardown(self) -> None:
        """Whatever was done, everybody's points are where the model has them."""
        for organization in self.organizations:
            for sandbox in (False, True):
                self.read_the_organization(self._new_key(organization, sandbox=sandbox))
        for email_key in self.model.users:
            self._compare_user(email_key)

    def _new_organization(self, points: int, *, sandbox: bool) -> Key:
        """Make an organization with the same opening balance in both modes, and a key for one of them."""
        name = f"Acme {points}"
        with self.engine.begin() as connection:
            id_ = organizations.create(connection, name, sandbox_start_balance=0)
            created_at = timestamp(organizations.find(connection, id_, sandbox=False).created_at)
        organization = Organization(id_, name, created_at)
        self.organizations.append(organization)
        for mode in (False, True):
            if points:
                self._refill(organization, points, sandbox=mode)
        return self._new_key(organization, sandbox=sandbox)

    def _refill(self, organization: Organization, points: int, *, sandbox: bool) -> None:
        self.model.refill(organization, points, sandbox=sandbox)
        with self.engine.begin() as connection:
            balance = refill(connection, organization.id, points, sandbox=sandbox)
        assert balance == organization.purses[sandbox].balance

    def _set_flags(self, organization: Organization, **flags: bool) -> None:
        with self.engine.begin() as connection:
            organizations.set_flags(connection, organization.id, **flags)
        for flag, on in flags.items():
            setattr(organization, flag, on)

    def _new_key(self, organization: Organization, *, sandbox: bool) -> Key:
        with self.engine.begin() as connection:
            return Key(*api_keys.create(connection, organization.id, sandbox=sandbox), organization, sandbox)

    def _valid_key_like(self, key: Key) -> Key:
        """Return a new key of the same organization and mode: the one that was used may be revoked by now."""
        return self._new_key(key.organization, sandbox=key.sandbox)

    def _compare_user(self, email_key: str) -> None:
        with self.engine.begin() as connection:
            user = users.find(connection, email_key)
        assert self.model.users[email_key] == {
            "id": user.id,
            "first_name": user.first_name,
            "last_name": user.last_name,
        }
        assert user.balance == self.model.credits[email_key]

    def _address(self, person: str) -> str:
        return f"{person}@{self.domain}"

    def _addressed(self, request: Request) -> Request:
        """Give the people of a request their addresses, each in the dress that was drawn for it."""
        return replace(
            request,
            recipients=[person.replace(person.strip(), self._address(person.strip())) for person in request.recipients],
        )

    def _call(self, method: str, path: str, key: Key, **request: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key.text}", **request.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **request)

    def _send(self, key: Key, request: Request, idempotency_key: str | None) -> httpx.Response:
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return self._call("POST", "/v1/points/send", key, json=_body(request), headers=headers)

    def _assert_issued(self, answer: httpx.Response, batch: Batch) -> int:
        """Compare a 201 with the model's batch, give the batch its ids and its moment, keep it, and return its id."""
        assert answer.status_code == 201, answer.text
        assert "Idempotency-Replayed" not in answer.headers
        document = answer.json()
        transactions = document["data"]["transactions"]
        ids, moments = [entry["id"] for entry in transactions], {entry["created_at"] for entry in transactions}
        assert sorted(set(ids)) == ids
        known = {entry["id"] for other in self.model.batches.values() for entry in other.data["transactions"]}
        assert known.isdisjoint(ids)
        assert len(moments) == 1
        assert _TIMESTAMP.match(transactions[0]["created_at"])
        for expected, entry in zip(batch.data["transactions"], transactions, strict=True):
            expected |= {"id": entry["id"], "created_at": entry["created_at"]}
        batch_id = document["additional_data"]["batch_id"]
        assert batch_id not in self.model.batches
        assert document == {
            "success": True,
            "data": batch.data,
            "errors": None,
            "additional_data": {"version": "1.0", "batch_id": batch_id},
        }
        self.model.batches[batch_id] = batch
        return int(batch_id)


def _one_of(things: Sequence[Any], which: int) -> Any:
    return things[which % len(things)]


def _body(request: Request) -> Body:
    """Write a request as JSON; a list of one as `recipient`, a default left out."""
    one = len(request.recipients) == 1
    body: Body = {"recipient": request.recipients[0]} if one else {"recipients": request.recipients}
    body["amount"] = request.amount
    if request.atomic:
        body["atomic"] = True
    if request.label is not None:
        body["label"] = request.label
    return body


def _assert_replayed(answer: httpx.Response, used: Used) -> None:
    assert answer.status_code == 201, answer.text
    assert answer.headers["Idempotency-Replayed"] == "true"
    assert answer.content == used.content


def _assert_refused(answer: httpx.Response, status: int, field: str) -> None:
    assert answer.status_code == status, answer.text
    document = answer.json()
    assert list(document["errors"]) == [field]
    assert document == {"success": False, "data": None, "errors": document["errors"], "additional_data": None}


@pytest.mark.timeout(0 if _SOAK_STEPS else 180)
def test_any_order_of_actions_answers_as_the_model_does_and_the_books_balance(service: Service) -> None:
    engine = service.new_engine()
    with httpx.Client(base_url=service.url, timeout=60) as client:
        run_state_machine_as_test(
            # Documented as a factory, though typed as a class.
            cast("type[Points]", lambda: Points(client, engine)),
            settings=settings(
                max_examples=max(1, _STEPS // _STEPS_EACH),
                stateful_step_count=_STEPS_EACH,
                deadline=None,
                database=None,
                print_blob=True,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
            ),
        )
    engine.dispose()
    service.points("audit")
