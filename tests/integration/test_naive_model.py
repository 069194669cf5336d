"""The set-based write against a naive model: whatever is refilled, sent, registered and drained, they agree."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from app import organizations
from app.batches import schedule
from app.batches.transaction import TransactionRow
from app.ledger import issue
from app.ledger.refill import refill
from app.ledger.sandbox import register as register_in_sandbox
from app.scope import Scope
from app.users import new_user
from app.values.ids import POSITIONS
from tests.integration import books, races
from tests.integration.naive_model import (
    Cancel,
    Drain,
    End,
    Model,
    Refill,
    Register,
    Release,
    Return,
    Reverse,
    Row,
    Send,
    Step,
    Suspend,
)

pytestmark = pytest.mark.usefixtures("database")

ADDRESSES = ["ann@example.com", "bob@example.com", "cid@example.com", "dan@example.com", "Ann@Example.com"]


organization_ids = st.sampled_from([1, 2])
paid = st.lists(st.tuples(st.sampled_from(ADDRESSES), st.integers(1, 12)), min_size=1, max_size=6)
one_amount = st.booleans()


def _send(
    organization_id: int,
    sandbox: bool,
    atomic: bool,
    paid: list[tuple[str, int]],
    one_amount: bool,
    is_later: bool,
    has_end: bool,
) -> Send:
    emails, amounts = [email for email, _ in paid], [amount for _, amount in paid]
    amounts = amounts[:1] * len(amounts) if one_amount else amounts
    return Send(
        organization_id=organization_id,
        sandbox=sandbox,
        atomic=atomic,
        amounts=amounts,
        emails=emails,
        is_later=is_later,
        has_end=has_end,
    )


is_later = st.sampled_from([False, False, True])
has_end = st.booleans()
sends = st.builds(_send, organization_ids, st.booleans(), st.booleans(), paid, one_amount, is_later, has_end)
reverses = st.builds(
    Reverse,
    of=st.integers(0, 3),
    places=st.none() | st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True),
    amount=st.none() | st.integers(1, 12),
    atomic=st.booleans(),
)
steps = st.one_of(
    st.builds(Refill, organization_id=organization_ids, sandbox=st.booleans(), amount=st.integers(1, 80)),
    sends,
    sends,
    st.builds(Register, email=st.sampled_from(ADDRESSES), sandbox_of=st.none() | organization_ids),
    st.builds(Suspend, organization_id=organization_ids, is_suspended=st.booleans()),
    st.builds(Drain, organization_id=organization_ids),
    st.builds(Release),
    st.builds(Cancel, organization_id=organization_ids, which=st.integers(0, 9)),
    reverses,
    reverses,
    st.builds(End),
    st.builds(Return),
)

_TOMORROW = datetime.now(UTC) + timedelta(days=1)


@dataclass
class Both:
    """The service and the model, taken through the same steps."""

    model: Model = field(default_factory=Model)
    sent: list[tuple[int, Send]] = field(default_factory=list)
    queued: dict[int, list[tuple[int, Send | tuple[int, Reverse]]]] = field(default_factory=lambda: defaultdict(list))
    scheduled: list[tuple[int, Send]] = field(default_factory=list)
    cancelled: dict[int, Send] = field(default_factory=dict)
    final: dict[int, tuple[Send, list[Row] | None]] = field(default_factory=dict)
    reversed: dict[int, list[tuple[int, str | None]]] = field(default_factory=dict)

    def take(self, step: Step) -> None:
        match step:
            case Send():
                self._queue(step)
            case Reverse():
                self._queue_reversal(step)
            case Drain():
                self._drain(step.organization_id)
            case Release():
                self._release()
            case Cancel():
                self._cancel(step)
            case End():
                books.let_days_pass(2)
                self.model.end()
            case Return():
                books.return_unclaimed()
                self.model.give_back()
            case _:
                self._change(step)

    def _change(self, step: Refill | Register | Suspend) -> None:
        match step:
            case Refill():
                books.run(refill, step.organization_id, step.amount, sandbox=step.sandbox)
                self.model.balances[step.organization_id, step.sandbox] += step.amount
            case Register():
                if step.sandbox_of is None:
                    books.make_users(step.email)
                else:
                    books.run(register_in_sandbox, step.sandbox_of, new_user(step.email, "First", "Last"))
                self.model.register((step.sandbox_of, step.email.lower()))
            case Suspend():
                books.run(organizations.change, step.organization_id, {"is_suspended": step.is_suspended})
                self.model.suspended[step.organization_id] = step.is_suspended

    def _queue(self, step: Send) -> None:
        amount = step.amounts[0] if len(set(step.amounts)) == 1 else step.amounts
        batch_id = books.queue_batch(
            step.organization_id,
            step.emails,
            amount,
            sandbox=step.sandbox,
            atomic=step.atomic,
            send_at=_TOMORROW if step.is_later else None,
            hold_days=1 if step.has_end else None,
        )
        if self.model.suspended.get(step.organization_id):  # Accepted just before: it is queued, and refused.
            step = replace(step, is_later=False)
        self.sent.append((batch_id, step))
        if step.is_later:
            self.scheduled.append((batch_id, step))
        else:
            self.queued[step.organization_id].append((batch_id, step))

    def _drain(self, organization_id: int) -> None:
        due = self.queued.pop(organization_id, [])
        assert books.drain_all(organization_id) == [due_id for due_id, _ in due]
        for due_id, asked in due:
            if isinstance(asked, Send):
                self.final[due_id] = asked, self.model.issue(asked)
            else:
                batch_id, reverse = asked
                send, rows = self.final.get(batch_id) or (self.cancelled[batch_id], None)
                self.reversed[due_id] = self.model.reverse(send, _asked(rows or [], reverse.places), reverse)

    def _queue_reversal(self, step: Reverse) -> None:
        """Queue it for the batch that it names; places need transactions, so a batch that waits is taken whole."""
        if step.of >= len(self.sent):
            return
        batch_id, send = self.sent[-1 - step.of]
        if batch_id in dict(self.scheduled):  # That is refused: it can be cancelled.
            return
        if batch_id in self.cancelled or self.final.get(batch_id, (send, []))[1] is None:  # There is nothing to take.
            return
        if step.places is not None:
            there = [place for place in step.places if place < len(send.emails)]
            if not there or self.final.get(batch_id, (send, None))[1] is None:
                return
            step = replace(step, places=there)
        ids = None if step.places is None else [batch_id * POSITIONS + place for place in step.places]
        reversal_id = books.queue_reversal(
            send.organization_id,
            batch_id=batch_id if ids is None else None,
            transaction_ids=ids,
            amount=step.amount,
            atomic=step.atomic,
            sandbox=send.sandbox,
        )
        self.queued[send.organization_id].append((reversal_id, (batch_id, step)))

    def _release(self) -> None:
        books.move_scheduled("now()")
        books.run(schedule.release_due, at_most=1_000)
        for batch_id, send in self.scheduled:
            self.queued[send.organization_id].append((batch_id, send))
        self.scheduled.clear()
        for queue in self.queued.values():
            queue.sort(key=lambda queued: queued[0])  # In order of acceptance, whatever waited for its moment.

    def _cancel(self, step: Cancel) -> None:
        scheduled = [batch for batch in self.scheduled if batch[1].organization_id == step.organization_id]
        queued = self.queued[step.organization_id]
        waiting = [(queued_id, asked) for queued_id, asked in queued if isinstance(asked, Send)] + scheduled
        if not waiting:
            return
        batch_id, send = batch = waiting[step.which % len(waiting)]
        books.run(schedule.cancel, batch_id, Scope(step.organization_id, sandbox=send.sandbox))
        if batch in scheduled:
            self.scheduled.remove(batch)
        else:
            queued.remove(batch)
        self.cancelled[batch_id] = send

    def agree(self) -> None:
        for batch_id, send in self.cancelled.items():
            batch, rows = books.read_batch(send.organization_id, batch_id, sandbox=send.sandbox)
            assert (batch.status, rows) == ("cancelled", [])
        for (organization_id, sandbox), balance in self.model.balances.items():
            assert books.balance_of(organization_id, sandbox=sandbox) == balance
        for (sandbox_of, key), points in self.model.users.items():
            assert sandbox_of is not None or books.balance_of_user(key) == points
        for reversal_id, outcomes in self.reversed.items():
            assert books.entries_of(reversal_id) == outcomes
        for batch_id, (send, expected) in self.final.items():
            batch, rows = books.read_batch(send.organization_id, batch_id, sandbox=send.sandbox)
            assert batch.status == ("refused" if expected is None else "issued")
            assert [row.email for row in rows] == ([] if expected is None else send.emails)
            assert [
                (row.debited, row.credited, row.balance, _taken(amount, row))
                for amount, row in zip(send.amounts, rows, strict=expected is not None)
            ] == [(row.debited, row.credited, row.balance, row.reversed) for row in expected or []]
            if expected is not None:
                assert batch.debited_count == sum(row.debited for row in expected)
                amounts = [row.amount or batch.amount for row in rows]
                assert amounts == send.amounts
                assert batch.debited_amount == sum(send.amounts[: batch.debited_count])
                assert batch.current_balance == expected[-1].balance
        assert books.breaches() == []


def _taken(amount: int, row: TransactionRow) -> int:
    return 0 if row.points_left is None else amount - row.points_left


def _asked(rows: list[Row], places: list[int] | None) -> list[Row]:
    return rows if places is None else [rows[place] for place in places]


@races.first_of("examples", [30, 100])
def test_the_write_agrees_with_the_contract_taken_word_by_word(examples: int) -> None:
    agree = given(script=st.lists(steps, min_size=8, max_size=30), batches_max=st.sampled_from([1, 2, 200]))(_agree)
    effort(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])(agree)()


def _agree(script: list[Step], batches_max: int) -> None:
    books.empty()
    both = Both()
    for organization_id in (1, 2):
        books.make_organization()
        for sandbox in (False, True):  # It pays a send or two, and a part of the next.
            both.take(Refill(organization_id=organization_id, sandbox=sandbox, amount=30))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(issue, "BATCHES_MAX", batches_max)
        for step in [*script, Release(), Drain(organization_id=1), Drain(organization_id=2), Return()]:
            both.take(step)
    both.agree()
