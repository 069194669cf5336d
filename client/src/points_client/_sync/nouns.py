"""The calls of the service, noun by noun: made by `make_calls.py` from /openapi.json.

Every call may raise a `PointsError`: `Invalid`, `NotAuthorized`, `Refused`, or `NoAnswer`; and a `ValueError` for an id
that is none or a moment without a zone. Amounts are whole points. A list goes on over all pages, of `page_size` rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Unpack

from points_client import results
from points_client._sync.calling import Noun, rows_of
from points_client._sync.sending import posted, until_final
from points_client.outcomes import of_reverse, of_send
from points_client.requests import WAIT_S, AnyItem, Call, body, key_of, listed, path, query, send_body


class Own(Noun):
    """Calls about the organization of the key, and those that move its points."""

    def organization(self) -> results.Organization:
        """Return the caller's own organization.

        Shows the balance and the scheduled batches of the key's mode, and the limits of a send.
        """
        call = Call(method="GET", path="/v1/organization")
        return self._caller.answer(results.Organization, call)

    def reset_sandbox(self) -> results.Organization:
        """Put the sandbox balance and clock back.

        For development keys only. The difference is booked as a refill; batches, transactions and users stay. The
        clock of the sandbox is put back too. Works also while the organization is disabled or suspended, since
        nothing is issued.

        Raises:
            NotAllowed (403): The key is a live key, and only a sandbox can be changed so. `code` is
                `development_key_required` or `insufficient_scope` or `wrong_key`.
        """
        call = Call(method="POST", path="/v1/sandbox/reset")
        return self._caller.answer(results.Organization, call)

    def verify(
        self,
        *,
        recipients: Sequence[str] | None = None,
        amount: int | None = None,
        atomic: bool = False,
        label: str | None = None,
        expect: Mapping[str, int] | None = None,
        metadata: Mapping[str, str] | None = None,
        items: Iterable[AnyItem] | None = None,
    ) -> results.Verified:
        """Ask whether an issue is possible.

        A check only: nothing is written and nothing is reserved. The body and its faults are those of a send. A
        refusal is also 200, with `validated: false`: the balance does not pay the whole batch, the organization is
        disabled or suspended, or the batch is for more points than the key may send.

        Args:
            recipients: 1 to 10,000 addresses, which each get `amount` points; or, in their place, `items`.
            amount: Points for **each** recipient, or for each item without its own. `10.0`, `1e1` and `"10"` are not
                integers.
            atomic: True: debit nobody if the balance cannot pay the whole batch.
            label: Kept on every transaction of the batch.
            expect: `{"recipients": …, "amount": …}`, either or both. If they differ, it is `Invalid`.
            metadata: Shown on the batch, and never on its transactions.
            items: 1 to 10,000 recipients with their own amounts, labels or references.
        """
        call = Call(
            method="POST",
            path="/v1/points/verify",
            body=send_body(
                recipients=listed("recipients", recipients),
                amount=amount,
                atomic=atomic,
                label=label,
                expect=expect,
                metadata=metadata,
                items=listed("items", items),
            ),
        )
        return self._caller.answer(results.Verified, call)

    def sent_before(
        self,
        *,
        recipients: Sequence[str] | None = None,
        amount: int | None = None,
        atomic: bool = False,
        label: str | None = None,
        expect: Mapping[str, int] | None = None,
        metadata: Mapping[str, str] | None = None,
        items: Iterable[AnyItem] | None = None,
        idempotency_key: str | None = None,
    ) -> results.SentBefore:
        """Ask who was sent the same lately.

        A check only: nothing is written. The body and its faults are those of verify. Each recipient is compared
        with what the organization has sent to the same address, in the key's mode, within 30 days: the amount and
        the label. What is scheduled or queued counts; what was not debited, cancelled or taken back does not. If
        both have a `reference`, and other ones, they are not alike.

        Args:
            recipients: 1 to 10,000 addresses, which each get `amount` points; or, in their place, `items`.
            amount: Points for **each** recipient, or for each item without its own. `10.0`, `1e1` and `"10"` are not
                integers.
            atomic: True: debit nobody if the balance cannot pay the whole batch.
            label: Kept on every transaction of the batch.
            expect: `{"recipients": …, "amount": …}`, either or both. If they differ, it is `Invalid`.
            metadata: Shown on the batch, and never on its transactions.
            items: 1 to 10,000 recipients with their own amounts, labels or references.
            idempotency_key: The one that the send will have. A batch that has it already does not count, because the
                send would be answered with that batch.

        Raises:
            NoAnswer (503): Another such call of the organization is being answered, or the database is out of reach.
                Make the call again. `code` is `comparing` or `out_of_reach`.
        """
        call = Call(
            method="POST",
            path="/v1/points/sent-before",
            body=send_body(
                recipients=listed("recipients", recipients),
                amount=amount,
                atomic=atomic,
                label=label,
                expect=expect,
                metadata=metadata,
                items=listed("items", items),
            ),
            key=idempotency_key,
        )
        return self._caller.answer(results.SentBefore, call)

    def send(
        self,
        *,
        recipients: Sequence[str] | None = None,
        amount: int | None = None,
        atomic: bool = False,
        label: str | None = None,
        expect: Mapping[str, int] | None = None,
        metadata: Mapping[str, str] | None = None,
        send_at: datetime | str | None = None,
        hold_days: int | None = None,
        items: Iterable[AnyItem] | None = None,
        idempotency_key: str | None = None,
        wait_s: float = WAIT_S,
    ) -> results.Sent:
        """Issue points.

        Debits the organization and writes one transaction per recipient, in the order of the request, exactly once.
        Recipients are served while the balance lasts, and the rest get `debited: false`. If `atomic` is true and the
        balance cannot pay the whole batch, all get `debited: false`. Points of a recipient without an account are
        held until there is one, or for `hold_days`.

        Args:
            recipients: 1 to 10,000 addresses, which each get `amount` points; or, in their place, `items`.
            amount: Points for **each** recipient, or for each item without its own. `10.0`, `1e1` and `"10"` are not
                integers.
            atomic: True: debit nobody if the balance cannot pay the whole batch.
            label: Kept on every transaction of the batch.
            expect: `{"recipients": …, "amount": …}`, either or both. If they differ, it is `Invalid`.
            metadata: Shown on the batch, and never on its transactions.
            send_at: When to issue the batch: ISO 8601 with a zone, 1 minute to 366 days ahead.
            hold_days: For how many days points may be held, 1 to 3,650; then they go back to the organization. The
                default is the organization's own number of days, if it has one.
            items: 1 to 10,000 recipients with their own amounts, labels or references.
            idempotency_key: 1 to 255 visible ASCII characters that name the call. If you store it first, you can
                repeat the call after a crash of your program. Without one, a new key is made for the tries of this
                call.
            wait_s: Seconds to wait until it is done, over all tries; 0: do not wait. After that, what is accepted is
                returned with the `status` `queued`: it will be done once.

        Raises:
            NotAllowed (403): The organization is disabled or suspended, or already has 1,000 scheduled batches in
                this mode; or the batch is for more points than the key may send, in one batch or still on this day.
                Nothing was written. `code` is `organization_suspended` or `organization_disabled` or `key_limit` or
                `scheduled_limit` or `insufficient_scope` or `wrong_key`.
            Conflict (409): The batch was cancelled while the call waited, or the `idempotency_key` names a batch
                that was cancelled or rejected. `code` is `batch_cancelled` or `batch_rejected`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer: It is unknown whether it was accepted. Make the same call again with `NoAnswer.key`.
            NotAccepted: A `NoAnswer`, and it was surely not accepted.
        """
        outcome = of_send(
            send_body(
                recipients=listed("recipients", recipients),
                amount=amount,
                atomic=atomic,
                label=label,
                expect=expect,
                metadata=metadata,
                send_at=send_at,
                hold_days=hold_days,
                items=listed("items", items),
            ),
            key_of(idempotency_key),
            wait_s,
        )
        return posted(self._caller, outcome)

    def verify_reverse(
        self,
        *,
        batch: int | None = None,
        amount: int | None = None,
        atomic: bool = False,
        reason: str,
        expect: Mapping[str, int] | None = None,
        transactions: Iterable[int] | None = None,
    ) -> results.Recoverable:
        """Ask what could be taken back.

        A check only: nothing is written. The body and its faults are those of a reversal. If nothing would be taken,
        the answer is also 200, with `validated: false`.

        Args:
            batch: The id of the batch.
            amount: Points to take from **each** transaction. By default all that are left.
            atomic: True: take all or nothing.
            reason: Why the points are taken back; kept with the reversal.
            expect: `{"recoverable": …}`: what you believe comes back.
            transactions: Ids of transactions, each once.

        Raises:
            NotFound (404): The organization has no such batch in this mode. `code` is `not_found`.
        """
        call = Call(
            method="POST",
            path="/v1/points/reverse/verify",
            body=body(
                batch=batch,
                amount=amount,
                atomic=atomic,
                reason=reason,
                expect=expect,
                transactions=listed("transactions", transactions),
            ),
        )
        return self._caller.answer(results.Recoverable, call)

    def reverse(
        self,
        *,
        batch: int | None = None,
        amount: int | None = None,
        atomic: bool = False,
        reason: str,
        expect: Mapping[str, int] | None = None,
        transactions: Iterable[int] | None = None,
        idempotency_key: str | None = None,
        wait_s: float = WAIT_S,
    ) -> results.Reversed:
        """Take points back.

        Takes points of a batch or of some transactions back to the organization, in whole or in part. Sends and
        reversals are worked off in the order in which they were accepted. Held points can then never be claimed;
        credited points are taken from the account. Nothing is edited: the flags stay as they were issued, and
        `reversed` and `state` show the points taken since.

        Args:
            batch: The id of the batch.
            amount: Points to take from **each** transaction. By default all that are left.
            atomic: True: take all or nothing.
            reason: Why the points are taken back; kept with the reversal.
            expect: `{"recoverable": …}`: if another sum would come back, nothing is taken.
            transactions: Ids of transactions, each once.
            idempotency_key: 1 to 255 visible ASCII characters that name the call. If you store it first, you can
                repeat the call after a crash of your program. Without one, a new key is made for the tries of this
                call.
            wait_s: Seconds to wait until it is done, over all tries; 0: do not wait. After that, what is accepted is
                returned with the `status` `queued`: it will be done once.

        Raises:
            NotAllowed (403): The organization is disabled. Nothing was taken. `code` is `organization_disabled` or
                `insufficient_scope` or `wrong_key`.
            NotFound (404): The organization has no such batch in this mode. `code` is `not_found`.
            Conflict (409): The balance would exceed 64 bits; or the batch is only scheduled, or awaits an approval,
                and can be cancelled; or it was cancelled, refused or rejected, so there is nothing to take back; or
                another sum than `expect` names would come back. Nothing was taken. `code` is `balance_too_large` or
                `batch_scheduled` or `batch_awaiting_approval` or `batch_not_issued` or `other_sum`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer: It is unknown whether it was accepted. Make the same call again with `NoAnswer.key`.
            NotAccepted: A `NoAnswer`, and it was surely not accepted.
        """
        outcome = of_reverse(
            body(
                batch=batch,
                amount=amount,
                atomic=atomic,
                reason=reason,
                expect=expect,
                transactions=listed("transactions", transactions),
            ),
            key_of(idempotency_key),
            wait_s,
        )
        return posted(self._caller, outcome)


class Batches(Noun):
    """`points.batches`."""

    def get(self, batch_id: int) -> results.Batch:
        """Return one batch, as it is now.

        Works before and after the batch is issued. Shows all later claims and reversals. A key without the scope
        `read` sees the batches that it has sent; with `approve`, also those that an approval and those that it
        has answered.

        Raises:
            NotFound (404): The organization has no such batch in this mode. `code` is `not_found`.
        """
        call = Call(method="GET", path=path("batches", batch_id))
        return self._caller.answer(results.Batch, call, {"batch_id": batch_id})

    def list(
        self,
        *,
        email: str | None = None,
        batch: int | None = None,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        debited: bool | None = None,
        credited: bool | None = None,
        allocated: bool | None = None,
        idempotency_key: str | None = None,
        label: str | None = None,
        status: str | None = None,
        page_size: int = 100,
    ) -> Iterator[results.Batch]:
        """Yield all batches.

        The organization's batches in the key's mode, as they are now, ordered by when they were accepted. With
        `email` they are ordered by their ids. A key without the scope `read` sees of them what awaits an approval,
        what it has answered, and what it has sent.

        Args:
            email: With a transaction of this address: issued batches only.
            batch: Of this batch.
            created_from: Accepted at this time or later.
            created_to: Accepted at this time or earlier.
            debited: With at least one transaction that has this `debited` and the other flags asked for.
            credited: With at least one transaction that has this `credited` and the other flags asked for.
            allocated: With at least one transaction that has this `allocated` and the other flags asked for.
            idempotency_key: Sent with this `idempotency_key`, as long as it is kept.
            label: With exactly this label.
            status: In this state. Known: `awaiting_approval`, `scheduled`, `queued`, `issued`, `refused`,
                `cancelled`, `rejected`.
        """
        asked = query(
            email=email,
            batch=batch,
            created_from=created_from,
            created_to=created_to,
            debited=debited,
            credited=credited,
            allocated=allocated,
            idempotency_key=idempotency_key,
            label=label,
            status=status,
            limit=page_size,
        )
        return self._caller.rows(results.Batch, "/v1/batches", "batches", asked)

    def recipients(self, batch_id: int, *, page_size: int = 100) -> Iterator[results.BatchRecipient]:
        """Yield the recipients of a batch.

        Whom the batch pays, and how much, in the order of the request: before the issue, for who approves it, and
        after it. What became of each is in its transactions.

        Raises:
            NotFound (404): The organization has no such batch in this mode. `code` is `not_found`.
        """
        asked = query(limit=page_size)
        return self._caller.rows(results.BatchRecipient, path("batches", batch_id, "recipients"), "recipients", asked)

    def wait(self, batch_id: int, *, wait_s: float = WAIT_S) -> results.Batch:
        """Wait until a batch is final, at most `wait_s` seconds, and return it. Look at `final`."""
        call = Call(method="GET", path=path("batches", batch_id))
        look = partial(self._caller.answer, results.Batch, call, {"batch_id": batch_id})
        return until_final(look, wait_s=wait_s)

    def approve(self, batch_id: int) -> results.Batch:
        """Approve a batch.

        Approves a batch that awaits an approval: it is queued, or scheduled if its `send_at` is still to come, as if
        it had been accepted now. It is approved, rejected or cancelled, only one of these. Not by whoever has sent
        it. Approving it again changes nothing. What nobody has approved or rejected within 7 days is rejected.

        Raises:
            NotAllowed (403): The key, or the member who made it, has sent this batch: somebody else must approve it.
                Or the organization is disabled or suspended, and the batch awaits the approval still. Or it has a
                `send_at`, and the organization already has 1,000 scheduled batches in this mode. `code` is
                `own_batch` or `organization_disabled` or `organization_suspended` or `scheduled_limit` or
                `insufficient_scope` or `wrong_key`.
            NotFound (404): The organization has no such batch in this mode. `code` is `not_found`.
            Conflict (409): The batch does not an approval; the sentence says what it is. `code` is
                `batch_not_awaiting`.
            NoAnswer (503): A worker holds the organization's row, or the database is out of reach: it is not known
                what becomes of the batch. Make the same call again; that is safe. `code` is `not_known` or
                `out_of_reach`.
        """
        call = Call(method="POST", path=path("batches", batch_id, "approve"))
        return self._caller.answer(results.Batch, call, {"batch_id": batch_id})

    def reject(self, batch_id: int, reason: str) -> results.Batch:
        """Reject a batch.

        Rejects a batch that awaits an approval, for good: nobody is debited. Not by whoever has sent it. Rejecting
        it again changes nothing; the first reason stays.

        Args:
            reason: Why the batch is rejected; shown on it.

        Raises:
            NotAllowed (403): The key, or the member who made it, has sent this batch: somebody else must answer it.
                `code` is `own_batch` or `insufficient_scope` or `wrong_key`.
            NotFound (404): The organization has no such batch in this mode. `code` is `not_found`.
            Conflict (409): The batch does not an approval; the sentence says what it is. `code` is
                `batch_not_awaiting`.
            NoAnswer (503): A worker holds the organization's row, or the database is out of reach: it is not known
                what becomes of the batch. Make the same call again; that is safe. `code` is `not_known` or
                `out_of_reach`.
        """
        call = Call(method="POST", path=path("batches", batch_id, "reject"), body=body(reason=reason))
        return self._caller.answer(results.Batch, call, {"batch_id": batch_id})

    def cancel(self, batch_id: int) -> results.Batch:
        """Cancel a batch.

        Cancels a batch while it awaits an approval, is scheduled or queued. It is either cancelled or issued, never
        both. A call that waits for it is answered 409. Cancelling it again changes nothing. Works also while the
        organization is disabled or suspended.

        Raises:
            NotFound (404): The organization has no such batch in this mode. `code` is `not_found`.
            Conflict (409): The batch is issued, refused or rejected. `code` is `batch_final`.
            NoAnswer (503): A worker holds the organization's row, or the database is out of reach: it is not known
                what becomes of the batch. Make the same call again; that is safe. `code` is `not_known` or
                `out_of_reach`.
        """
        call = Call(method="POST", path=path("batches", batch_id, "cancel"))
        return self._caller.answer(results.Batch, call, {"batch_id": batch_id})

    def reschedule(self, batch_id: int, send_at: datetime | str) -> results.Batch:
        """Move a scheduled batch.

        Changes `send_at` while the batch is scheduled, also if the organization is disabled or suspended. A batch
        that was approved awaits another approval if it is moved to a later time than seven days after that.

        Args:
            send_at: When to issue the batch: ISO 8601 with a zone, 1 minute to 366 days ahead.

        Raises:
            NotFound (404): The organization has no such batch in this mode. `code` is `not_found`.
            Conflict (409): The batch is not scheduled: it awaits an approval, is queued or final. The sentence says
                what can be done. `code` is `batch_not_scheduled` or `batch_cancelled`.
            NoAnswer (503): A worker holds the organization's row, or the database is out of reach: it is not known
                what becomes of the batch. Make the same call again; that is safe. `code` is `not_known` or
                `out_of_reach`.
        """
        call = Call(method="PATCH", path=path("batches", batch_id), body=body(send_at=send_at))
        return self._caller.answer(results.Batch, call, {"batch_id": batch_id})


class Transactions(Noun):
    """`points.transactions`."""

    def get(self, transaction_id: int) -> results.Transaction:
        """Return one transaction, as it is now.

        Shows all later claims and reversals.

        Raises:
            NotFound (404): The organization has no such transaction in this mode. `code` is `not_found`.
        """
        call = Call(method="GET", path=path("transactions", transaction_id))
        return self._caller.answer(results.Transaction, call, {"id": transaction_id})

    def list(
        self,
        *,
        email: str | None = None,
        batch: int | None = None,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        debited: bool | None = None,
        credited: bool | None = None,
        allocated: bool | None = None,
        reference: str | None = None,
        state: str | None = None,
        user: int | None = None,
        page_size: int = 100,
    ) -> Iterator[results.Transaction]:
        """Yield all transactions.

        The organization's transactions in the key's mode, as they are now, ordered by when they were issued. With
        `email`, `user` or `reference` they are ordered by their ids.

        Args:
            email: Of this address.
            batch: Of this batch.
            created_from: Issued at this time or later.
            created_to: Issued at this time or earlier.
            debited: With this `debited`.
            credited: With this `credited`.
            allocated: With this `allocated`.
            reference: Of an item with exactly this reference, in any batch.
            state: In this state. Known: `credited`, `held`, `unpaid`, `reversed`, `returned`.
            user: Whose `recipient` is the user with this id, also at addresses that the user had before.
        """
        asked = query(
            email=email,
            batch=batch,
            created_from=created_from,
            created_to=created_to,
            debited=debited,
            credited=credited,
            allocated=allocated,
            reference=reference,
            state=state,
            user=user,
            limit=page_size,
        )
        return self._caller.rows(results.Transaction, "/v1/transactions", "transactions", asked)

    def extend(self, transaction_id: int, held_until: datetime | str) -> results.Transaction:
        """Hold a transaction for longer.

        Moves `held_until` of a held transaction to a later moment. Until then the points are credited when an
        account with the address is registered; afterwards they cannot be claimed, and go back to the organization.
        Moving it to the same moment again changes nothing. Works also while the organization is disabled or
        suspended.

        Args:
            held_until: Until when to hold the points: ISO 8601 with a zone, later than now, at most 3,650 days
                ahead.

        Raises:
            NotFound (404): The organization has no such transaction in this mode. `code` is `not_found`.
            Conflict (409): The transaction is not held, has no end, or its end has come; the sentence says which.
                `code` is `cannot_extend`.
        """
        call = Call(
            method="POST", path=path("transactions", transaction_id, "extend"), body=body(held_until=held_until)
        )
        return self._caller.answer(results.Transaction, call, {"id": transaction_id})


class Reversals(Noun):
    """`points.reversals`."""

    def get(self, reversal_id: int) -> results.Reversal:
        """Return one reversal, as it is now.

        Works before and after the reversal is done.

        Raises:
            NotFound (404): The organization has no such reversal in this mode. `code` is `not_found`.
        """
        call = Call(method="GET", path=path("reversals", reversal_id))
        return self._caller.answer(results.Reversal, call, {"reversal_id": reversal_id})

    def list(
        self,
        *,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        idempotency_key: str | None = None,
        status: str | None = None,
        page_size: int = 100,
    ) -> Iterator[results.Reversal]:
        """Yield all reversals.

        The organization's reversals in the key's mode, as they are now, ordered by when they were accepted.

        Args:
            created_from: Accepted at this time or later.
            created_to: Accepted at this time or earlier.
            idempotency_key: Sent with this `idempotency_key`, as long as it is kept.
            status: In this state. Known: `queued`, `done`, `refused`.
        """
        asked = query(
            created_from=created_from,
            created_to=created_to,
            idempotency_key=idempotency_key,
            status=status,
            limit=page_size,
        )
        return self._caller.rows(results.Reversal, "/v1/reversals", "reversals", asked)

    def wait(self, reversal_id: int, *, wait_s: float = WAIT_S) -> results.Reversal:
        """Wait until a reversal is final, at most `wait_s` seconds, and return it. Look at `final`."""
        call = Call(method="GET", path=path("reversals", reversal_id))
        look = partial(self._caller.answer, results.Reversal, call, {"reversal_id": reversal_id})
        return until_final(look, wait_s=wait_s)


class Requests(Noun):
    """`points.requests`."""

    def list(
        self,
        *,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        request_id: str | None = None,
        api_key: int | None = None,
        batch: int | None = None,
        status: int | str | None = None,
        page_size: int = 100,
    ) -> Iterator[results.Request]:
        """Yield the calls of the keys.

        The calls that the organization's keys made in the key's mode in the last 30 days, ordered by when they
        arrived, each listed about a quarter of a second after its answer. Bodies, addresses and keys are not kept.
        To look for one call, give its `request_id`; to see what became of a batch, `batch`. Calls that a key has
        made beyond its rate limit, or after it was revoked, are listed in part. While the database is out of reach,
        calls are missing.

        Args:
            created_from: Arrived at this time or later.
            created_to: Arrived at this time or earlier.
            request_id: With this `X-Request-Id`.
            api_key: Made with the key of this id.
            batch: About this batch.
            status: Answered with this status, such as `403`, or with any of a hundred, such as `4xx`.
        """
        asked = query(
            created_from=created_from,
            created_to=created_to,
            request_id=request_id,
            api_key=api_key,
            batch=batch,
            status=status,
            limit=page_size,
        )
        return self._caller.rows(results.Request, "/v1/requests", "requests", asked)


class Webhooks(Noun):
    """`points.webhooks`."""

    def create(
        self,
        url: str,
        *,
        types: Sequence[str] = ("*",),
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> results.Webhook:
        """Have events sent to a URL.

        Starts after the last event so far. The signing `secret` is shown only in this answer. An organization may
        have ten webhooks in each mode.

        Args:
            url: The URL that events are sent to: https, without user info, at a public address.
            types: The types of events to send, `*` for any part of one.
            description: For people.
            idempotency_key: 1 to 255 visible ASCII characters that name the call. If you store it first, you can
                repeat the call after a crash of your program. Without one, a new key is made for the tries of this
                call.

        Raises:
            NotAllowed (403): The organization already has ten webhooks in this mode. `code` is `webhook_limit` or
                `insufficient_scope` or `wrong_key`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(
            method="POST",
            path="/v1/webhooks",
            body=body(url=url, types=listed("types", types), description=description),
            key=key_of(idempotency_key),
        )
        return self._caller.answer(results.Webhook, call)

    def list(self) -> Iterator[results.Webhook]:
        """Yield all webhooks.

        The organization's webhooks in the key's mode, as they are now, oldest first.
        """
        asked = query()
        return self._caller.rows(results.Webhook, "/v1/webhooks", "webhooks", asked)

    def get(self, webhook_id: int) -> results.Webhook:
        """Return one webhook, as it is now.

        Shows its position in the log, and whether it fails.

        Raises:
            NotFound (404): The organization has no such webhook in this mode. `code` is `not_found`.
        """
        call = Call(method="GET", path=path("webhooks", webhook_id))
        return self._caller.answer(results.Webhook, call, {"id": webhook_id})

    def update(
        self,
        webhook_id: int,
        *,
        url: str | None = None,
        types: Sequence[str] | None = None,
        description: str | None = None,
    ) -> results.Webhook:
        """Change a webhook.

        A new URL is tried at once and starts with no failures; the position stays. What is None stays as it is;
        `description=""` clears it.

        Args:
            url: The URL that events are sent to: https, without user info, at a public address.
            types: The types of events to send, `*` for any part of one.
            description: For people.

        Raises:
            NotFound (404): The organization has no such webhook in this mode. `code` is `not_found`.
        """
        call = Call(
            method="PATCH",
            path=path("webhooks", webhook_id),
            body=body(url=url, types=listed("types", types), description=description),
        )
        return self._caller.answer(results.Webhook, call, {"id": webhook_id})

    def delete(self, webhook_id: int) -> None:
        """Delete a webhook.

        Nothing more is sent to it, except an attempt that is under way. A missing webhook is not an error: an
        earlier try may have removed it.
        """
        self._caller.delete(path("webhooks", webhook_id), may_be_gone=True)

    def ping(self, webhook_id: int) -> results.Webhook:
        """Have a ping sent.

        Writes an event `ping`, which is sent to this webhook only, in order, even if its types do not include it.

        Raises:
            NotFound (404): The organization has no such webhook in this mode. `code` is `not_found`.
            Conflict (409): The webhook is disabled. `code` is `webhook_disabled`.
            NoAnswer: It is unknown whether it was done, and it is not done again: look before you call again.
        """
        call = Call(method="POST", path=path("webhooks", webhook_id, "ping"), repeatable=False)
        return self._caller.answer(results.Webhook, call, {"id": webhook_id})

    def rotate(self, webhook_id: int, *, idempotency_key: str | None = None) -> results.Webhook:
        """Change the secret of a webhook.

        The new `secret` is shown only in this answer. For 24 hours the old one signs too, and so does each that was
        the newest within them: there are several signatures.

        Args:
            idempotency_key: 1 to 255 visible ASCII characters that name the call. If you store it first, you can
                repeat the call after a crash of your program. Without one, a new key is made for the tries of this
                call.

        Raises:
            NotFound (404): The organization has no such webhook in this mode. `code` is `not_found`.
            Conflict (409): So many secrets sign already that another signature might not fit into the header. `code`
                is `webhook_rotated_often`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(method="POST", path=path("webhooks", webhook_id, "rotate"), key=key_of(idempotency_key))
        return self._caller.answer(results.Webhook, call, {"id": webhook_id})

    def disable(self, webhook_id: int) -> results.Webhook:
        """Disable a webhook.

        Nothing is sent until it is enabled again. Nothing is lost: it keeps its position.

        Raises:
            NotFound (404): The organization has no such webhook in this mode. `code` is `not_found`.
        """
        call = Call(method="POST", path=path("webhooks", webhook_id, "disable"))
        return self._caller.answer(results.Webhook, call, {"id": webhook_id})

    def enable(self, webhook_id: int) -> results.Webhook:
        """Enable a webhook.

        It goes on from its position at once. A failing webhook is also tried at once.

        Raises:
            NotFound (404): The organization has no such webhook in this mode. `code` is `not_found`.
        """
        call = Call(method="POST", path=path("webhooks", webhook_id, "enable"))
        return self._caller.answer(results.Webhook, call, {"id": webhook_id})

    def replay(self, webhook_id: int, from_sequence: int) -> results.Webhook:
        """Have events sent again.

        Sends all events again from a sequence that it has passed.

        Args:
            from_sequence: The sequence of the first event to send again.

        Raises:
            NotFound (404): The organization has no such webhook in this mode. `code` is `not_found`.
        """
        call = Call(method="POST", path=path("webhooks", webhook_id, "replay"), body=body(from_sequence=from_sequence))
        return self._caller.answer(results.Webhook, call, {"id": webhook_id})

    def skip(self, webhook_id: int) -> results.Webhook:
        """Skip the event that a webhook is stuck at.

        It goes on with the next event at once. The skipped event stays in the log.

        Raises:
            NotFound (404): The organization has no such webhook in this mode. `code` is `not_found`.
            Conflict (409): No attempt to deliver its next event has failed. `code` is `webhook_not_stuck`.
            NoAnswer: It is unknown whether it was done, and it is not done again: look before you call again.
        """
        call = Call(method="POST", path=path("webhooks", webhook_id, "skip"), repeatable=False)
        return self._caller.answer(results.Webhook, call, {"id": webhook_id})

    def deliveries(self, webhook_id: int, *, page_size: int = 100) -> Iterator[results.Delivery]:
        """Yield delivery attempts.

        The attempts of the last 30 days, newest first.

        Raises:
            NotFound (404): The organization has no such webhook in this mode. `code` is `not_found`.
        """
        asked = query(limit=page_size)
        return self._caller.rows(results.Delivery, path("webhooks", webhook_id, "deliveries"), "deliveries", asked)


class Rehearsing(Noun):
    """`points.rehearsing`: for development keys only."""

    def set_clock(self, now: datetime | str) -> datetime:
        """Set the time of the sandbox.

        For development keys only. Schedules, held points and every time that the sandbox shows go by it: what has
        become due is issued or returned within seconds. It goes forwards only; a reset puts it back.

        Args:
            now: The time of the sandbox from now on: not before its present time, at most 731 days ahead of ours.

        Raises:
            NotAllowed (403): The key is a live key, and only a sandbox can be changed so. `code` is
                `development_key_required` or `insufficient_scope` or `wrong_key`.
            NoAnswer: It is unknown whether it was done, and it is not done again: look before you call again.
        """
        call = Call(method="POST", path="/v1/sandbox/clock", body=body(now=now), repeatable=False)
        return (self._caller.answer(results.SandboxTime, call)).now

    def register(
        self, email: str, first_name: str, last_name: str = "", *, idempotency_key: str | None = None
    ) -> results.SandboxUser:
        """Register a user of the sandbox.

        For development keys only. The user is known in this sandbox only, which knows no others, and claims what it
        holds for the address. Repeating the call changes nothing.

        Args:
            email: The address of the person.
            first_name: The given name.
            last_name: The family name; some people have none.
            idempotency_key: Needed only to be answered as the first call was.

        Raises:
            NotAllowed (403): The key is a live key, or the sandbox already has 10,000 users. `code` is
                `development_key_required` or `sandbox_user_limit` or `insufficient_scope` or `wrong_key`.
            Conflict (409): The address is registered with other names. `code` is `user_conflict`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(
            method="POST",
            path="/v1/sandbox/users",
            body=body(email=email, first_name=first_name, last_name=last_name),
            key=idempotency_key,
        )
        return self._caller.answer(results.SandboxUser, call)


class Actions(Noun):
    """Calls about the whole platform."""

    def actions(
        self,
        *,
        organization: int | None = None,
        by: str | None = None,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        page_size: int = 100,
    ) -> Iterator[results.Action]:
        """Yield who did what.

        What the platform's programs did with their keys, operators by commands, and members of organizations in the
        console, newest first. Each is written in the transaction of the deed and never changed. It names what it is
        about by ids. What an organization's programs do is in the list of its requests. Scope: `organizations:read`.

        Args:
            organization: What concerns this organization.
            by: By whom: a kind (`member`, `platform_key`, `operator`), or one of it: `member:7`, `platform_key:3`,
                `operator:ada`.
            created_from: Done at this time or later.
            created_to: Done at this time or earlier.
        """
        asked = query(
            organization=organization, by=by, created_from=created_from, created_to=created_to, limit=page_size
        )
        return self._caller.rows(results.Action, "/v1/platform/actions", "actions", asked)


class Users(Noun):
    """`platform.users`."""

    def register(
        self,
        email: str,
        first_name: str,
        last_name: str = "",
        *,
        external_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> results.PlatformUser:
        """Register a user.

        Registers a user, and credits what is held for the address. Repeating the call changes nothing, so a retry
        needs no key. Scope: `users:register`.

        Args:
            email: The address of the person.
            first_name: The given name.
            last_name: The family name; some people have none.
            external_id: Your own id of the user: 1 to 128 visible characters, of one user only.
            idempotency_key: Needed only to be answered as the first call was.

        Raises:
            Conflict (409): The address is registered with other names or another `external_id`; or the `external_id`
                is that of a user with another address. Nothing was written. `code` is `user_conflict`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(
            method="POST",
            path="/v1/platform/users",
            body=body(email=email, first_name=first_name, last_name=last_name, external_id=external_id),
            key=idempotency_key,
        )
        return self._caller.answer(results.PlatformUser, call)

    def register_many(
        self, users: Iterable[results.NewUser], *, idempotency_key: str | None = None
    ) -> tuple[results.RegisteredUser, ...]:
        """Register up to 1,000 users.

        Registers users in the order of the request, and credits what is held for each. An entry at fault or in
        conflict is answered at its place and keeps no other back. Repeating the call changes nothing. Scope:
        `users:register`.

        Args:
            users: The users to register, 1 to 1000. An entry at fault is answered at its place, and keeps no other
                back.
            idempotency_key: Needed only to be answered as the first call was.

        Raises:
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(
            method="POST", path="/v1/platform/users/bulk", body=body(users=listed("users", users)), key=idempotency_key
        )
        return self._caller.call(call, partial(rows_of, results.RegisteredUser, "users"))

    def get(self, user_id: int) -> results.PlatformUser:
        """Return one user, with the balance.

        The balance is exact at that moment. Scope: `users:read`.

        Raises:
            NotFound (404): There is no such user. `code` is `not_found`.
        """
        call = Call(method="GET", path=path("platform/users", user_id))
        return self._caller.answer(results.PlatformUser, call, {"id": user_id})

    def list(
        self, *, email: str | None = None, external_id: str | None = None, page_size: int = 100
    ) -> Iterator[results.PlatformUser]:
        """Yield all users.

        The users, each with its exact balance, newest first. Scope: `users:read`.

        Args:
            email: Known by this address.
            external_id: With exactly this id of yours.
        """
        asked = query(email=email, external_id=external_id, limit=page_size)
        return self._caller.rows(results.PlatformUser, "/v1/platform/users", "users", asked)

    def entries(self, user_id: int, *, page_size: int = 100) -> Iterator[results.Entry]:
        """Yield what made a user's balance.

        Credits, and what was taken back of them, newest first. Their sum is the balance: nothing is left out or
        comes twice while points are issued, claimed and taken back, and what is new comes first. Scope:
        `users:read`.

        Raises:
            NotFound (404): There is no such user. `code` is `not_found`.
        """
        asked = query(limit=page_size)
        return self._caller.rows(results.Entry, path("platform/users", user_id, "entries"), "entries", asked)

    def change(self, user_id: int, **changes: Unpack[results.ChangedUser]) -> results.PlatformUser:
        """Change a user.

        Changes the fields that are sent. A new address is the one by which the user is known from then on: what is
        held for it is credited, and what the user has stays. Scope: `users:change`.

        Args:
            email: The address by which the user is known from now on.
            first_name: The given name.
            last_name: The family name; None: none.
            external_id: Your own id of the user: 1 to 128 visible characters, of one user only. None: none.

        Raises:
            NotFound (404): There is no such user. `code` is `not_found`.
            Conflict (409): The address or the `external_id` is that of another user; or the user was erased. Nothing
                was changed. `code` is `user_conflict` or `user_erased`.
        """
        call = Call(method="PATCH", path=path("platform/users", user_id), body=changes)
        return self._caller.answer(results.PlatformUser, call, {"id": user_id})

    def erase(self, user_id: int) -> results.PlatformUser:
        """Erase a user for good.

        The names and addresses of the user become `erased-<id>`: in the user, its transactions, their batches and
        reversals, events and uploaded lists. The id, the balance and all amounts stay, and a replay of a batch
        answers with what is left. Of a batch that is not issued yet, this recipient will not be debited. What is
        sent to the address later finds no account; who registers with it is a new user. Of a user with many
        transactions this takes some seconds. Repeating the call goes on where it was interrupted, or changes
        nothing. Scope: `users:erase`.

        Raises:
            NotFound (404): There is no such user. `code` is `not_found`.
            NoAnswer (503): The user is erased, but a copy of its address may be left; or the database is out of
                reach. Make the call again. `code` is `erasure_unfinished` or `out_of_reach`.
        """
        call = Call(method="POST", path=path("platform/users", user_id, "erase"))
        return self._caller.answer(results.PlatformUser, call, {"id": user_id})


class Organizations(Noun):
    """`platform.organizations`."""

    def create(
        self,
        name: str,
        *,
        external_id: str | None = None,
        balance: int = 0,
        sandbox_balance: int | None = None,
        held_days: int | None = None,
        low_balance: int | None = None,
        idempotency_key: str | None = None,
    ) -> results.PlatformOrganization:
        """Make an organization.

        Its opening balances are refills. Send an `external_id` or an `idempotency_key`: then you can safely repeat a
        call whose answer was lost. Scope: `organizations:write`.

        Args:
            name: The name of the organization.
            external_id: Your own id of the organization: 1 to 128 visible characters, of one organization only.
            balance: The opening live balance, a refill.
            sandbox_balance: The opening sandbox balance; by default 1000000. A reset restores it.
            held_days: For how many days points are held; None: for ever. It holds for what is issued from then on.
            low_balance: Below which live balance an event says so; None: never.
            idempotency_key: 1 to 255 visible ASCII characters that name the call. If you store it first, you can
                repeat the call after a crash of your program. Without one, a new key is made for the tries of this
                call.

        Raises:
            Conflict (409): The `external_id` is that of another organization. Nothing was written. `code` is
                `organization_conflict`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(
            method="POST",
            path="/v1/platform/organizations",
            body=body(
                name=name,
                external_id=external_id,
                balance=balance,
                sandbox_balance=sandbox_balance,
                held_days=held_days,
                low_balance=low_balance,
            ),
            key=key_of(idempotency_key),
        )
        return self._caller.answer(results.PlatformOrganization, call)

    def get(self, organization_id: int) -> results.PlatformOrganization:
        """Return one organization, in both modes.

        With both balances, its options, and whether it may issue. Scope: `organizations:read`.

        Raises:
            NotFound (404): There is no such organization. `code` is `not_found`.
        """
        call = Call(method="GET", path=path("platform/organizations", organization_id))
        return self._caller.answer(results.PlatformOrganization, call, {"id": organization_id})

    def list(self, *, external_id: str | None = None, page_size: int = 100) -> Iterator[results.PlatformOrganization]:
        """Yield all organizations.

        Newest first. Scope: `organizations:read`.

        Args:
            external_id: With exactly this id of yours.
        """
        asked = query(external_id=external_id, limit=page_size)
        return self._caller.rows(results.PlatformOrganization, "/v1/platform/organizations", "organizations", asked)

    def change(
        self, organization_id: int, **changes: Unpack[results.ChangedOrganization]
    ) -> results.PlatformOrganization:
        """Change an organization.

        Changes the fields that are sent: its name, its options, and whether it may issue. What runs for it ends
        first. Scope: `organizations:write`.

        Args:
            name: The name of the organization.
            external_id: Your own id of the organization: 1 to 128 visible characters, of one organization only.
            held_days: For how many days points are held; None: for ever. It holds for what is issued from then on.
            low_balance: Below which live balance an event says so; None: never.
            approval_above: Above how many points of one batch it awaits an approval; None: never. It holds for what
                is sent from then on.
            approval_of: Whose sends an approval: console (those of members) or all (those of keys too).
            requires_second_factor: True: members must set up a second factor before anything else in the console.
            is_suspended: True: it cannot issue until it is resumed.
            is_disabled: True: it can neither issue nor take back until it is enabled.

        Raises:
            NotFound (404): There is no such organization. `code` is `not_found`.
            Conflict (409): The `external_id` is that of another organization. Nothing was written. `code` is
                `organization_conflict`.
        """
        call = Call(method="PATCH", path=path("platform/organizations", organization_id), body=changes)
        return self._caller.answer(results.PlatformOrganization, call, {"id": organization_id})

    def refill(
        self,
        organization_id: int,
        amount: int,
        *,
        sandbox: bool = False,
        reference: str | None = None,
        idempotency_key: str | None = None,
    ) -> results.Refill:
        """Put points into a balance.

        Adds points to the live or the sandbox balance. An amount below 0 corrects a refill, and is listed and summed
        as one. Send an `idempotency_key`, a `reference` or both: then you can safely repeat a call whose answer was
        lost. Scope: `refills:write`.

        Args:
            amount: The points to add; below 0, those to take off again, which needs a `reference`.
            sandbox: True: for the sandbox balance.
            reference: Your own name for the refill: 1 to 128 visible characters, of one refill of the organization.
            idempotency_key: 1 to 255 visible ASCII characters that name the call. If you store it first, you can
                repeat the call after a crash of your program. Without one, a new key is made for the tries of this
                call.

        Raises:
            NotFound (404): There is no such organization. `code` is `not_found`.
            Conflict (409): The `reference` is that of a refill of another amount or mode; or the balance would fall
                below 0 or exceed 64 bits. Nothing was booked. `code` is `refill_conflict` or `correction_too_large`
                or `balance_too_large`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(
            method="POST",
            path=path("platform/organizations", organization_id, "refills"),
            body=body(amount=amount, sandbox=sandbox, reference=reference),
            key=key_of(idempotency_key),
        )
        return self._caller.answer(results.Refill, call)

    def refills(
        self, organization_id: int, *, sandbox: bool | None = None, page_size: int = 100
    ) -> Iterator[results.Refill]:
        """Yield the refills of an organization.

        Newest first, of the live balance, or of the sandbox's with `sandbox=true`. A reset of the sandbox is a
        refill too, and may take points away. Scope: `organizations:read`.

        Args:
            sandbox: True: of the sandbox balance; else of the live one.

        Raises:
            NotFound (404): There is no such organization. `code` is `not_found`.
        """
        asked = query(sandbox=sandbox, limit=page_size)
        return self._caller.rows(
            results.Refill, path("platform/organizations", organization_id, "refills"), "refills", asked
        )

    def create_key(
        self,
        organization_id: int,
        name: str | None = None,
        *,
        sandbox: bool = False,
        scopes: Sequence[str] | None = None,
        expires_at: str | None = None,
        batch_limit: int | None = None,
        daily_limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> results.NewKey:
        """Make a key of an organization.

        The key is shown once and not stored. Scope: `keys:write`.

        Args:
            name: What people call the key: 1 to 100 visible characters; None: nothing.
            sandbox: True: a development key, for the sandbox.
            scopes: What the key may do; None: everything.
            expires_at: Until when the key may call: a day, to its end in UTC, or a time with its zone; None: without
                end.
            batch_limit: The most points that the key may send in one batch; None: no limit.
            daily_limit: The most points that the key may send on one day in UTC; None: no limit.
            idempotency_key: 1 to 255 visible ASCII characters that name the call. If you store it first, you can
                repeat the call after a crash of your program. Without one, a new key is made for the tries of this
                call.

        Raises:
            NotFound (404): There is no such organization. `code` is `not_found`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(
            method="POST",
            path=path("platform/organizations", organization_id, "keys"),
            body=body(
                name=name,
                sandbox=sandbox,
                scopes=listed("scopes", scopes),
                expires_at=expires_at,
                batch_limit=batch_limit,
                daily_limit=daily_limit,
            ),
            key=key_of(idempotency_key),
        )
        return self._caller.answer(results.NewKey, call)

    def keys(self, organization_id: int, *, page_size: int = 100) -> Iterator[results.Key]:
        """Yield the keys of an organization.

        Newest first, of both modes, revoked ones included. Scope: `organizations:read`.

        Raises:
            NotFound (404): There is no such organization. `code` is `not_found`.
        """
        asked = query(limit=page_size)
        return self._caller.rows(results.Key, path("platform/organizations", organization_id, "keys"), "keys", asked)

    def revoke_key(self, organization_id: int, key_id: int) -> None:
        """Revoke a key of an organization.

        At once and for good; again is the same answer. Scope: `keys:write`.

        Raises:
            NotFound (404): The organization has no such key, or there is no such organization. `code` is
                `not_found`.
        """
        self._caller.delete(path("platform/organizations", organization_id, "keys", key_id))

    def add_member(
        self,
        organization_id: int,
        email: str,
        first_name: str,
        last_name: str = "",
        *,
        role: str,
        idempotency_key: str | None = None,
    ) -> results.NewMember:
        """Make a member of an organization.

        A person who may use the console. The link leads to the page where they choose a password; it is good once,
        for 24 hours, and shown once. Scope: `members:write`.

        Args:
            email: The address of the person.
            first_name: The given name.
            last_name: The family name; some people have none.
            role: What the member may do: viewer, sender, approver, admin; each includes the ones before it.
            idempotency_key: 1 to 255 visible ASCII characters that name the call. If you store it first, you can
                repeat the call after a crash of your program. Without one, a new key is made for the tries of this
                call.

        Raises:
            NotFound (404): There is no such organization. `code` is `not_found`.
            Conflict (409): A member of the organization has the address; or the service does not know where people
                reach its console. Nothing was written. `code` is `member_conflict` or `no_public_url`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(
            method="POST",
            path=path("platform/organizations", organization_id, "members"),
            body=body(email=email, first_name=first_name, last_name=last_name, role=role),
            key=key_of(idempotency_key),
        )
        return self._caller.answer(results.NewMember, call)

    def members(self, organization_id: int, *, page_size: int = 100) -> Iterator[results.Member]:
        """Yield the members of an organization.

        Newest first, without those who were removed. Scope: `members:read`.

        Raises:
            NotFound (404): There is no such organization. `code` is `not_found`.
        """
        asked = query(limit=page_size)
        return self._caller.rows(
            results.Member, path("platform/organizations", organization_id, "members"), "members", asked
        )

    def link_member(
        self, organization_id: int, member_id: int, *, idempotency_key: str | None = None
    ) -> results.NewMember:
        """Make a new link for a member.

        For who has lost the first one or forgotten the password: good once, for 24 hours. An earlier link ends; the
        password stays valid until another is chosen. Scope: `members:write`.

        Args:
            idempotency_key: 1 to 255 visible ASCII characters that name the call. If you store it first, you can
                repeat the call after a crash of your program. Without one, a new key is made for the tries of this
                call.

        Raises:
            NotFound (404): The organization has no such member, or there is no such organization. `code` is
                `not_found`.
            Conflict (409): The service does not know where people reach its console, so it can make no link. `code`
                is `no_public_url`.
            Invalid (422): The `idempotency_key` was used with a different body. `code` is `idempotency_key_reused`.
            NoAnswer (503): The database is out of reach, or the operator has set no key to encrypt secrets with.
                `code` is `secrets_key_missing` or `out_of_reach`.
        """
        call = Call(
            method="POST",
            path=path("platform/organizations", organization_id, "members", member_id, "link"),
            key=key_of(idempotency_key),
        )
        return self._caller.answer(results.NewMember, call)

    def remove_member(self, organization_id: int, member_id: int) -> None:
        """Remove a member of an organization.

        At once and for good, with every session; again is the same answer. What the member did stays in the log. The
        last admin may be removed too. Scope: `members:write`.

        Raises:
            NotFound (404): The organization has no such member, or there is no such organization. `code` is
                `not_found`.
        """
        self._caller.delete(path("platform/organizations", organization_id, "members", member_id))
