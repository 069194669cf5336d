"""The service against a naive model: any order of operators' and callers' actions, every answer compared in full."""

import os
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import httpx
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
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

from tests.e2e.state_machine.callers import Callers, Used, expect_refused, expect_replayed
from tests.e2e.state_machine.model import Model, Request
from tests.e2e.state_machine.operators import Key, Operators
from tests.e2e.state_machine.strategies import any_number, dresses, people, points, requests, reversed_points
from tests.service.inside import Service

# Read here, because a test runs without any setting of the machine's.
_SOAK_STEPS = int(os.environ.get("POINTS_SOAK_STEPS", "0"))
_STEPS_EACH = 60


class Points(RuleBasedStateMachine):
    """One organization or more, their keys, and a few people; nothing is shared with another run."""

    keys: Bundle[Key] = Bundle("keys")
    revoked: Bundle[Key] = Bundle("revoked")

    def __init__(self, client: httpx.Client, engine: Engine) -> None:
        super().__init__()
        self.model = Model()
        self.operators = Operators(engine, self.model)
        self.callers = Callers(client, self.model)
        self.used: list[Used] = []
        self.with_an_end: list[int] = []
        self.domain = f"{uuid.uuid4().hex}.example"

    @initialize(target=keys, points=points, sandbox=st.booleans())
    def first_organization(self, points: int, sandbox: bool) -> Key:
        return self.operators.new_key(self.operators.create_organization(points), sandbox=sandbox)

    @rule(target=keys, points=st.one_of(st.just(0), points), sandbox=st.booleans())
    def create_organization(self, points: int, sandbox: bool) -> Key:
        return self.operators.new_key(self.operators.create_organization(points), sandbox=sandbox)

    @rule(which=any_number, points=points, sandbox=st.booleans())
    def refill(self, which: int, points: int, sandbox: bool) -> None:
        self.operators.refill(_one_of(self.operators.organizations, which), points, sandbox=sandbox)

    @rule(
        which=any_number,
        flag=st.sampled_from(["is_disabled", "is_suspended"]),
        on=st.sampled_from([False, False, True]),
    )
    def disable_enable_suspend_or_resume(self, which: int, flag: str, on: bool) -> None:
        self.operators.set_flags(_one_of(self.operators.organizations, which), **{flag: on})

    @rule(target=keys, which=any_number, sandbox=st.booleans())
    def make_another_key(self, which: int, sandbox: bool) -> Key:
        return self.operators.new_key(_one_of(self.operators.organizations, which), sandbox=sandbox)

    @rule(target=revoked, key=consumes(keys))
    def revoke_a_key(self, key: Key) -> Key:
        self.operators.revoke(key)
        return key

    @rule(person=people, dress=dresses)
    def register_a_user(self, person: str, dress: Any) -> None:
        self.operators.register(dress(f"{person}@{self.domain}"))

    @precondition(lambda self: self.model.held)
    @rule(which=any_number, dress=dresses)
    def register_somebody_for_whom_points_are_held(self, which: int, dress: Any) -> None:
        self.operators.register(dress(_one_of(self.model.held, which)))

    @rule(key=keys, request=requests)
    def verify(self, key: Key, request: Request) -> None:
        self.callers.verify(key, self._addressed(request))

    @rule(key=keys, request=requests, times=st.integers(1, 3))
    def send(self, key: Key, request: Request, times: int) -> None:
        """Without an idempotency key, equal sends are batches of their own."""
        request = self._addressed(request)
        for _ in range(times):
            answer = self.callers.send(key, request)
            if key.organization.refusal is None:
                self.callers.expect_issued(answer, key, request)
            else:
                expect_refused(answer, 403, "organization")

    @rule(key=keys, request=requests, times=st.integers(1, 3))
    def send_under_an_idempotency_key(self, key: Key, request: Request, times: int) -> None:
        """With one, equal sends are one batch, and a refused one does not use the key up."""
        request, idempotency_key = self._addressed(request), uuid.uuid4().hex
        answer = self.callers.send(key, request, idempotency_key)
        if key.organization.refusal is not None:
            expect_refused(answer, 403, "organization")
            self.operators.set_flags(key.organization, is_disabled=False, is_suspended=False)
            answer = self.callers.send(key, request, idempotency_key)
        self.callers.expect_issued(answer, key, request)
        self.used.append(Used(key, idempotency_key, request, answer.content))
        for _ in range(times - 1):
            expect_replayed(self.callers.send(key, request, idempotency_key), self.used[-1])

    @precondition(lambda self: self.used)
    @rule(which=any_number, dress=dresses)
    def retry_with_the_same_body(self, which: int, dress: Any) -> None:
        """It is the same however its addresses are written."""
        used = _one_of(self.used, which)
        request = replace(used.request, recipients=[dress(email.strip()) for email in used.request.recipients])
        expect_replayed(self._retry(used, request), used)

    @precondition(lambda self: self.used)
    @rule(which=any_number, request=requests)
    def retry_with_another_body(self, which: int, request: Request) -> None:
        used, request = _one_of(self.used, which), self._addressed(request)
        if request.meaning == used.request.meaning:
            request = replace(request, atomic=not request.atomic)
        expect_refused(self._retry(used, request), 422, "idempotency_key")

    @precondition(lambda self: self.used)
    @rule(which=any_number, other=st.sampled_from(["amount", "atomic", "label", "order", "fewer"]))
    def retry_with_a_body_that_differs_in_one_place(self, which: int, other: str) -> None:
        used = _one_of(self.used, which)
        request, recipients = used.request, list(used.request.recipients)
        changed = {
            "amount": replace(request, amount=request.amount % 1_000_000_000 + 1),
            "atomic": replace(request, atomic=not request.atomic),
            "label": replace(request, label="another" if request.label is None else None),
            "order": replace(request, recipients=recipients[::-1]),
            "fewer": replace(request, recipients=recipients[:-1]),
        }[other]
        if changed.recipients and changed.meaning != request.meaning:
            expect_refused(self._retry(used, changed), 422, "idempotency_key")

    @precondition(lambda self: self.model.batches)
    @rule(which=any_number, key=keys)
    def read_a_batch(self, which: int, key: Key) -> None:
        """To another organization, and in the other mode, it is not there."""
        batch_id, batch = _one_of(list(self.model.batches.items()), which)
        if (key.organization, key.sandbox) == (batch.organization, batch.sandbox):
            self.callers.compare_batch(batch_id, key)
        else:
            expect_refused(self.callers.call("GET", f"/v1/batches/{batch_id}", key), 404, "batch")

    @precondition(lambda self: self.model.batches)
    @rule(which=any_number, places=st.lists(st.integers(0, 4), max_size=3, unique=True), points=reversed_points)
    def take_back(self, which: int, places: list[int], points: int | None) -> None:
        """A batch, or some of its transactions; what is taken back cannot be taken again."""
        batch_id, batch = _one_of(list(self.model.batches.items()), which)
        key = self.operators.new_key(batch.organization, sandbox=batch.sandbox)
        there = [place for place in places if place < len(batch.transaction_ids)]
        self.callers.reverse(key, batch_id, there or None, points)

    @rule(key=keys, request=requests)
    def send_what_is_held_for_a_day(self, key: Key, request: Request) -> None:
        """Without an idempotency key: its end may come, and a replay would show the one that it had."""
        request = self._addressed(request)
        self.operators.set_held_days(key.organization, 1)
        answer = self.callers.send(key, request)
        if key.organization.refusal is None:
            self.with_an_end.append(self.callers.expect_issued(answer, key, request, days=1))
        self.operators.set_held_days(key.organization, None)

    @precondition(lambda self: self.with_an_end)
    @rule(which=any_number)
    def the_end_of_a_batch_comes(self, which: int) -> None:
        batch_id = self.with_an_end.pop(which % len(self.with_an_end))
        self.operators.end(batch_id)

    @rule(key=keys, request=requests)
    def schedule_and_cancel(self, key: Key, request: Request) -> None:
        self.callers.schedule_and_cancel(key, self._addressed(request))

    @rule(key=keys)
    def read_the_organization(self, key: Key) -> None:
        self.callers.compare_organization(key)

    @rule(key=revoked, request=requests)
    def call_with_a_revoked_key(self, key: Key, request: Request) -> None:
        expect_refused(self.callers.send(key, self._addressed(request)), 401, "authorization")
        expect_refused(self.callers.call("GET", "/v1/organization", key), 401, "authorization")

    def teardown(self) -> None:
        """Whatever was done since: points and batches are as the model has them, and a retry gets its 201 again."""
        own = {
            (organization.id, sandbox): self.operators.new_key(organization, sandbox=sandbox)
            for organization in self.operators.organizations
            for sandbox in (False, True)
        }
        for key in own.values():
            self.callers.compare_organization(key)
        for batch_id, batch in self.model.batches.items():
            self.callers.compare_batch(batch_id, own[batch.organization.id, batch.sandbox])
        for used in self.used:
            expect_replayed(self._retry(used, used.request), used)
        for email_key in self.model.users:
            self.operators.compare_user(email_key)

    def _addressed(self, request: Request) -> Request:
        """Give the people of a request their addresses, each in the dress that was drawn for it."""
        recipients = [
            person.replace(person.strip(), f"{person.strip()}@{self.domain}") for person in request.recipients
        ]
        return replace(request, recipients=recipients)

    def _retry(self, used: Used, request: Request) -> httpx.Response:
        """Send under a used idempotency key, with a new API key: the one of then may be revoked by now."""
        key = self.operators.new_key(used.key.organization, sandbox=used.key.sandbox)
        return self.callers.send(key, request, used.idempotency_key)


def _one_of(things: Sequence[Any], which: int) -> Any:
    return things[which % len(things)]


@pytest.mark.timeout(0 if _SOAK_STEPS else 600)
@pytest.mark.parametrize("steps", [_SOAK_STEPS] if _SOAK_STEPS else [120, pytest.param(480, marks=pytest.mark.long)])
def test_any_order_of_actions_answers_as_the_model_does_and_the_books_balance(service: Service, steps: int) -> None:
    engine = service.new_engine()
    with httpx.Client(base_url=service.url, timeout=60) as client:
        run_state_machine_as_test(
            # Documented as a factory, though typed as a class.
            cast("type[Points]", lambda: Points(client, engine)),
            settings=settings(
                max_examples=max(1, steps // _STEPS_EACH),
                stateful_step_count=_STEPS_EACH,
                deadline=None,
                # Each run is a few hundred calls: a failure is made shorter, but not explained line by line.
                phases=[Phase.generate, Phase.shrink],
                database=None,
                print_blob=True,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
            ),
        )
    engine.dispose()
    service.command("audit")
