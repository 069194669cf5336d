"""`Points`: the calls of one key."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime
from functools import partial
from ssl import SSLContext
from typing import Any

import httpx

from points_client._sync.batches import Batches
from points_client._sync.calling import Caller, Connected, as_
from points_client._sync.events import Events
from points_client._sync.rehearsing import Rehearsing
from points_client._sync.request_log import Requests
from points_client._sync.reversals import Reversals
from points_client._sync.sending import send_all
from points_client._sync.transactions import Transactions
from points_client._sync.waiting import posted
from points_client._sync.webhooks import Webhooks
from points_client.attempts import RETRIED, Wait
from points_client.outcomes import of_reverse, of_send
from points_client.parts import PART_SIZE, Run
from points_client.requests import (
    PATIENCE_S,
    WAIT_S,
    AnyItem,
    Call,
    key_of,
    query,
    reverse_body,
    send_body,
)
from points_client.results import (
    Organization,
    Sent,
    SentBefore,
    Transaction,
    Verified,
    read_organization,
    read_verdict,
)
from points_client.reversal_results import Recoverable, Reversed
from points_client.service_address import from_environment
from points_client.statement_results import Statement, read_statement


class Points(Connected):
    """A Points Issuing Service, called with one API key.

    Args:
        key: `pts_live_…` or `pts_dev_…`. With a development key, no real points move.
        url: where the service is, such as `https://points.example.com`.
        patience_s: for how many seconds a call without `wait_s` is tried again; `math.inf`: without end; 0: once.
        transport: replaces the network in tests: `points_client.testing.FakePoints`.
        ssl_context: which certificates are trusted; None: those that `SSL_CERT_FILE` or `SSL_CERT_DIR` names, or
            those of httpx.
        on_wait: called before each wait with its reason and length. If it raises, the call ends.
        retried: the statuses that are tried again.

    `sandbox` tells whether the key is a development key.

    Every call may raise a `PointsError`: `Invalid`, `NotAuthorized`, `Refused`, or `NoAnswer`.

    Raises:
        ValueError: the key, the URL, or what the environment says of proxies and certificates is not valid.
    """

    def __init__(
        self,
        key: str,
        url: str,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.BaseTransport | None = None,
        ssl_context: SSLContext | None = None,
        on_wait: Callable[[Wait], object] | None = None,
        retried: AbstractSet[int] = RETRIED,
    ) -> None:
        caller = Caller(
            key,
            url,
            patience_s=patience_s,
            transport=transport,
            ssl_context=ssl_context,
            on_wait=on_wait,
            retried=retried,
        )
        self._caller = caller
        self.sandbox = key.strip().startswith("pts_dev_")
        self.batches = Batches(caller)
        self.transactions = Transactions(caller)
        self.reversals = Reversals(caller)
        self.requests = Requests(caller)
        self.events = Events(caller)
        self.webhooks = Webhooks(caller)
        self.rehearsing = Rehearsing(caller)

    @classmethod
    def from_env(cls, **options: Any) -> "Points":
        """Return the client of the key in `POINTS_KEY` and the URL in `POINTS_URL`; `options` as above.

        Raises:
            ValueError: one of them is not set or not valid.
        """
        return cls(from_environment("POINTS_KEY"), from_environment("POINTS_URL"), **options)

    def organization(self) -> Organization:
        """Return the key's organization, with its balance and what is scheduled in the key's mode, and the limits."""
        return self._caller.call(Call(method="GET", path="/v1/organization"), read_organization)

    def statement(self, *, from_: date | str, to: date | str) -> Statement:
        """Return what moved the balance of the key's mode, one row for each day in UTC, both ends included.

        Raises:
            Invalid: there are more than 366 days, `to` is after today, or `from_` after `to`.
        """
        asked = query(**{"from": from_, "to": to})
        call = Call(method="GET", path="/v1/statement", query=asked)
        return self._caller.call(call, partial(read_statement, asked))

    def reset_sandbox(self) -> Organization:
        """Put the balance of the sandbox back to its start value, and its clock to ours; return the organization.

        Raises:
            Refused: the key is not a development key (403).
        """
        return self._caller.call(Call(method="POST", path="/v1/sandbox/reset"), partial(as_, Organization))

    def verify(
        self,
        *,
        recipients: Sequence[str] | None = None,
        items: Iterable[AnyItem] | None = None,
        amount: int | None = None,
        label: str | None = None,
        atomic: bool = False,
        expect: Mapping[str, int] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Verified:
        """Tell whether a send would pay everybody. It writes nothing and reserves nothing."""
        body = send_body(
            recipients=recipients,
            items=items,
            amount=amount,
            label=label,
            atomic=atomic,
            expect=expect,
            metadata=metadata,
        )
        call = Call(method="POST", path="/v1/points/verify", body=body)
        return self._caller.call(call, partial(read_verdict, Verified))

    def sent_before(
        self,
        *,
        recipients: Sequence[str] | None = None,
        items: Iterable[AnyItem] | None = None,
        amount: int | None = None,
        label: str | None = None,
        idempotency_key: str | None = None,
    ) -> SentBefore:
        """Tell how many of the recipients were lately sent the same amount, or the same label. It writes nothing.

        Args:
            idempotency_key: the one that the send will have. A batch that has it already does not count, because the
                send would be answered with that batch.
        """
        body = send_body(recipients=recipients, items=items, amount=amount, label=label, atomic=False)
        call = Call(method="POST", path="/v1/points/sent-before", body=body, key=idempotency_key)
        return self._caller.call(call, partial(as_, SentBefore))

    def send(
        self,
        *,
        recipients: Sequence[str] | None = None,
        items: Iterable[AnyItem] | None = None,
        amount: int | None = None,
        label: str | None = None,
        atomic: bool = False,
        idempotency_key: str | None = None,
        expect: Mapping[str, int] | None = None,
        metadata: Mapping[str, str] | None = None,
        send_at: datetime | str | None = None,
        hold_days: int | None = None,
        wait_s: float = WAIT_S,
    ) -> Sent:
        """Issue points: one transaction for each recipient, in order, exactly once.

        Args:
            recipients: 1 to 10,000 addresses, which each get `amount` points; or
            items: recipients with their own amounts, labels or references.
            idempotency_key: 1 to 255 visible ASCII characters that name this send. If you store the key first, you can
                repeat the send after a crash of your program. Without one, a new key is made for the tries of this
                call; `Sent` and `NoAnswer` contain it.
            expect: control totals, `{"recipients": …, "amount": …}`. If they differ, the call raises `Invalid`, and
                nobody is paid.
            send_at: when to issue it, with a zone; then `Sent.status` is `scheduled`.
            wait_s: seconds to wait until it is issued, over all tries. After that, an accepted send is returned with
                the `status` `queued`: it will be issued once, and `batches.wait` waits for it. 0: do not wait.

        A recipient whom the balance does not pay has `debited` false; `Sent` is returned all the same.

        Raises:
            ValueError: something cannot be sent at all; nothing was.
            NoAnswer: it is unknown whether it was accepted. Send the same again with `NoAnswer.key`.
            NotAccepted: a `NoAnswer`, and it was surely not accepted.
            Invalid: the send has faults, or the key was used with another body.
            Refused: the organization may not issue, or the batch of this key was cancelled.
        """
        body = send_body(
            recipients=recipients,
            items=items,
            amount=amount,
            label=label,
            atomic=atomic,
            expect=expect,
            metadata=metadata,
            send_at=send_at,
            hold_days=hold_days,
        )
        return posted(self._caller, of_send(body, key_of(idempotency_key), wait_s))

    def send_all(
        self,
        items: Iterable[AnyItem | str],
        *,
        run: str,
        amount: int | None = None,
        label: str | None = None,
        metadata: Mapping[str, str] | None = None,
        part_size: int = PART_SIZE,
        in_flight: int = 2,
        wait_s: float = 300.0,
        allow_repeats: bool = False,
    ) -> Iterator[Transaction]:
        """Send to any number of recipients, and yield each transaction, in their order.

        Args:
            items: addresses, or items with their own amounts, labels or references. They are read while they are sent.
            run: the name of this run, such as `2026-03`. It begins the idempotency key of each part, which ends with
                the part's number: `2026-03-part-1`.
            part_size: items in one part; at most as many as the service takes in one send.
            in_flight: parts that are sent at the same time. With 1, each part is paid after the one before it: choose
                that if the balance may not pay all.
            wait_s: seconds to wait for each part.
            allow_repeats: an address may come again without a reference. The service must allow it too.

        **Safe to run again** after any interruption, within 30 days: paid transactions are yielded again, but not paid
        again. For that, these must stay the same: `run`, the items and their order, `amount`, `label`, `metadata`,
        `part_size`. If they differ, the service answers `Invalid` (422), and that part is not paid again. A new run
        needs a new name. An address or a reference that comes again is a fault wherever it stands, as in one send; the
        same address may come again when each has a reference.

        Nothing is sent before you ask for the first transaction. When a part fails, all parts before it were yielded,
        and a part that was sent at the same time may be paid: run it again.

        Raises:
            NoAnswer: a part was not issued in time. Run it again.
            Invalid, Refused: as by `send`.
            ValueError: `run`, `part_size` or `in_flight` is not valid; or an item cannot be sent, or comes again: the
                parts before it are paid, nothing of its own part.
        """
        more = {"amount": amount, "label": label, "metadata": metadata}
        parts = Run(run, amount=amount, size=part_size, allow_repeats=allow_repeats)
        return send_all(self._caller, items, parts, more=more, in_flight=in_flight, wait_s=wait_s)

    def verify_reverse(
        self,
        *,
        batch: int | None = None,
        transactions: Iterable[int] | None = None,
        reason: str,
        amount: int | None = None,
        atomic: bool = False,
    ) -> Recoverable:
        """Tell what `reverse` would take back. It writes nothing."""
        body = reverse_body(batch=batch, transactions=transactions, reason=reason, amount=amount, atomic=atomic)
        call = Call(method="POST", path="/v1/points/reverse/verify", body=body)
        return self._caller.call(call, partial(read_verdict, Recoverable))

    def reverse(
        self,
        *,
        batch: int | None = None,
        transactions: Iterable[int] | None = None,
        reason: str,
        amount: int | None = None,
        atomic: bool = False,
        idempotency_key: str | None = None,
        wait_s: float = WAIT_S,
    ) -> Reversed:
        """Take points back from a batch, or from 1 to 10,000 transactions: `amount` of each, or all that is left.

        `idempotency_key` and `wait_s` are as in `send`.

        Raises:
            NoAnswer: it is unknown whether it was accepted. Make the same call again with `NoAnswer.key`.
            Invalid: the call has faults, or the key was used with another body.
            Refused: the organization is disabled, there is no such batch, or it is only scheduled: cancel it.
        """
        body = reverse_body(batch=batch, transactions=transactions, reason=reason, amount=amount, atomic=atomic)
        return posted(self._caller, of_reverse(body, key_of(idempotency_key), wait_s))
