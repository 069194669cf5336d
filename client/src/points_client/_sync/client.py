"""`Points`: the calls of one key."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from types import TracebackType

import httpx

from points_client._sync.batches import Batches
from points_client._sync.calling import Caller, result
from points_client._sync.events import Events
from points_client._sync.reversals import Reversals
from points_client._sync.sending import send, send_all
from points_client._sync.transactions import Transactions
from points_client._sync.webhooks import Webhooks
from points_client.attempts import RETRIED, Wait
from points_client.comparing import is_of
from points_client.errors import NoAnswer
from points_client.parts import PART_SIZE
from points_client.requests import PATIENCE_S, WAIT_S, AnyItem, new_key, reverse_body, send_body
from points_client.results import Organization, Sent, Transaction, Verified
from points_client.reversal_results import Recoverable, Reversed


class Points:
    """A Points Issuing Service, called with one API key.

    Args:
        key: `pts_live_…` or `pts_dev_…`. With a development key, no real points move.
        url: where the service is, such as `https://points.example.com`.
        patience_s: for how many seconds a call without `wait_s` is tried again; `math.inf`: without end.
        transport: replaces the network in tests: `points_client.testing.FakePoints`.
        on_wait: called before each wait with its reason and length. If it raises, the call ends.
        retried: the statuses that are tried again.

    `sandbox` tells whether the key is a development key.

    Every call may raise a `PointsError`: `Invalid`, `NotAuthorized`, `Refused`, or `NoAnswer`.

    Raises:
        ValueError: the key or the URL is not valid.
    """

    def __init__(
        self,
        key: str,
        url: str,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.BaseTransport | None = None,
        on_wait: Callable[[Wait], object] | None = None,
        retried: AbstractSet[int] = RETRIED,
    ) -> None:
        caller = Caller(key, url, patience_s=patience_s, transport=transport, on_wait=on_wait, retried=retried)
        self._caller = caller
        self.sandbox = key.strip().startswith("pts_dev_")
        self.batches = Batches(caller)
        self.transactions = Transactions(caller)
        self.reversals = Reversals(caller)
        self.events = Events(caller)
        self.webhooks = Webhooks(caller)

    def close(self) -> None:
        """Close the connections."""
        self._caller.close()

    def __enter__(self) -> "Points":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def organization(self) -> Organization:
        """Return the key's organization, with the balance of the key's mode and what is scheduled."""
        answer = self._caller.call("GET", "/v1/organization")
        return result(Organization, {**answer.data, "scheduled": answer.additional.get("scheduled")})

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
        answer = self._caller.call("POST", "/v1/points/verify", body=body)
        return result(Verified, {**answer.additional, **answer.data})

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
            NoAnswer: it is unknown whether it was accepted. Send the same again with `NoAnswer.key`.
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
        return send(self._caller, body, new_key() if idempotency_key is None else idempotency_key, wait_s)

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

        **Safe to run again** after any interruption, within 30 days: paid transactions are yielded again, but not paid
        again. For that, these must stay the same: `run`, the items and their order, `amount`, `label`, `metadata`,
        `part_size`. If they differ, the service answers `Invalid` (422), and that part is not paid again. A new run
        needs a new name.

        Nothing is sent before you ask for the first transaction. When a part fails, all parts before it were yielded,
        and a part that was sent at the same time may be paid: run it again.

        Raises:
            NoAnswer: a part was not issued in time. Run it again.
            Invalid, Refused: as by `send`.
            ValueError: `run` is not a valid name, or `part_size` or `in_flight` is less than 1.
        """
        more = {"amount": amount, "label": label, "metadata": metadata}
        return send_all(
            self._caller, items, run=run, more=more, part_size=part_size, in_flight=in_flight, wait_s=wait_s
        )

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
        answer = self._caller.call("POST", "/v1/points/reverse/verify", body=body)
        return result(Recoverable, {**answer.additional, **answer.data})

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
        key = new_key() if idempotency_key is None else idempotency_key
        answer = self._caller.call("POST", "/v1/points/reverse", body=body, key=key, wait_s=wait_s)
        nothing = {"transactions": (), "amount": None, "current_balance": None}
        about = {"status": "done", "replayed": answer.replayed, "idempotency_key": key}
        found = result(Reversed, {**nothing, **about, **answer.data}, key=key)
        if found.status == "done" and not is_of(found.transactions, body):
            raise NoAnswer("The answer is about other transactions than those sent. Is the URL right?", key=key)
        return found
