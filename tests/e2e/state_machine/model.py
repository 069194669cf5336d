"""A naive model of the service: what each call must answer, worked out one recipient at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

Body = dict[str, Any]


@dataclass
class Purse:
    """The points of an organization in one mode."""

    balance: int = 0
    last_refill: int = 0


@dataclass
class Organization:
    """An organization with a purse for each mode, by `sandbox`."""

    id: int
    name: str
    created_at: str
    is_disabled: bool = False
    is_suspended: bool = False
    purses: dict[bool, Purse] = field(default_factory=lambda: {False: Purse(), True: Purse()})

    def body(self, *, sandbox: bool) -> Body:
        return {
            "id": self.id,
            "name": self.name,
            "is_disabled": self.is_disabled,
            "is_suspended": self.is_suspended,
            "balance": self.purses[sandbox].balance,
            "last_refill": self.purses[sandbox].last_refill,
            "created_at": self.created_at,
        }

    @property
    def refusal(self) -> str | None:
        """The code of why it may not issue; disabled wins."""
        if self.is_disabled:
            return "organization_disabled"
        return "organization_suspended" if self.is_suspended else None


@dataclass(frozen=True)
class Request:
    """What a caller asks for; `recipients` are the addresses as sent.

    With `own_amounts` it is sent as items; one that is None is `amount`. There may be more than recipients.
    """

    recipients: Sequence[str]
    amount: int
    atomic: bool
    label: str | None
    own_amounts: Sequence[int | None] | None = None
    has_references: bool = False

    @property
    def amounts(self) -> list[int]:
        own = self.own_amounts or [None] * len(self.recipients)
        return [amount or self.amount for amount, _ in zip(own, self.recipients, strict=False)]

    @property
    def references(self) -> list[str | None]:
        has_some = self.own_amounts is not None and self.has_references
        return [f"order-{place}" if has_some else None for place in range(len(self.recipients))]

    @property
    def meaning(self) -> tuple[object, ...]:
        items = list(zip(map(key_of, self.recipients), self.amounts, self.references, strict=True))
        return (items, self.atomic, self.label)


@dataclass
class Batch:
    """An issued batch as it is now; its ids and its moment are the service's to choose."""

    organization: Organization
    sandbox: bool
    data: Body

    @property
    def transaction_ids(self) -> list[int]:
        return [transaction["id"] for transaction in self.data["transactions"]]


class Model:
    """Everything there is, in plain dictionaries and lists."""

    def __init__(self) -> None:
        self.users: dict[str, Body] = {}
        self.credits: dict[str, int] = {}
        self.batches: dict[int, Batch] = {}

    def refill(self, organization: Organization, amount: int, *, sandbox: bool) -> None:
        purse = organization.purses[sandbox]
        purse.balance += amount
        purse.last_refill = purse.balance

    def verify(self, organization: Organization, request: Request, *, sandbox: bool) -> tuple[bool, Body]:
        """Return whether the issue is possible, and what `additional_data` says about it."""
        available, required = organization.purses[sandbox].balance, sum(request.amounts)
        code = organization.refusal or ("insufficient_balance" if required > available else None)
        affordable = sum(total <= available for total in accumulate(request.amounts))
        figures = {"required": required, "available": available, "affordable_recipients": affordable}
        return code is None, {"code": code, **figures}

    def send(self, organization: Organization, request: Request, *, sandbox: bool) -> Batch:
        """Serve the recipients in order while the balance lasts; all or none of them if the batch is atomic."""
        purse, transactions, amount = organization.purses[sandbox], [], 0
        debited = purse.balance >= sum(request.amounts) or not request.atomic
        for email, points, reference in zip(request.recipients, request.amounts, request.references, strict=True):
            user = self.users.get(key_of(email))
            debited = debited and purse.balance >= points
            if debited:
                purse.balance -= points
                amount += points
            credited = debited and user is not None
            if credited and not sandbox:
                self.credits[key_of(email)] += points
            transactions.append(
                {
                    "organization": organization.body(sandbox=sandbox),
                    "recipient": user,
                    "email": email.strip(),
                    "amount": points,
                    "debited": debited,
                    "credited": credited,
                    "allocated": credited,
                    "sender": None,
                    "label": request.label,
                    "reference": reference,
                    "reversed": 0,
                    "held_until": None,
                    "state": "credited" if credited else "held" if debited else "unpaid",
                    "sandbox": sandbox,
                }
            )
        data = {"transactions": transactions, "amount": amount, "current_balance": purse.balance}
        return Batch(organization=organization, sandbox=sandbox, data=data)

    def register(self, email: str, user: Body) -> None:
        """Register a user and credit what is held; an address that is taken stays whose it is."""
        key = key_of(email)
        if key in self.users:
            return
        self.users[key], self.credits[key] = user, 0
        for transaction in self._held():
            if key_of(transaction["email"]) == key:
                transaction |= {"recipient": user, "credited": True, "allocated": True, "state": "credited"}
                transaction["held_until"] = None
                self.credits[key] += transaction["amount"] - transaction["reversed"]

    def reverse(self, batch: Batch, places: Sequence[int], points: int | None) -> list[tuple[int, str | None]]:
        """Take points back from these transactions of a batch: so many from each, or all that is left of it."""
        taken = []
        for transaction in (batch.data["transactions"][place] for place in places):
            left = transaction["amount"] - transaction["reversed"]
            code = None if points is None or points <= left else "more_than_left"
            code = "not_debited" if not transaction["debited"] else "already_reversed" if left == 0 else code
            part = 0 if code else points or left
            transaction["reversed"] += part
            batch.organization.purses[batch.sandbox].balance += part
            if transaction["credited"] and not batch.sandbox:
                self.credits[key_of(transaction["email"])] -= part
            if part == left > 0:
                transaction |= {"state": "reversed", "held_until": None}
            taken.append((part, code))
        return taken

    def give_back(self, batch: Batch) -> None:
        """The end of a batch has come: what is still held of it goes back."""
        for transaction in batch.data["transactions"]:
            if transaction["state"] == "held":
                batch.organization.purses[batch.sandbox].balance += transaction["amount"] - transaction["reversed"]
                transaction |= {"state": "returned", "reversed": transaction["amount"], "held_until": None}

    @property
    def held(self) -> list[str]:
        """The addresses for which live points are held."""
        return sorted({key_of(transaction["email"]) for transaction in self._held()})

    def _held(self) -> list[Body]:
        return [
            transaction
            for batch in self.batches.values()
            for transaction in batch.data["transactions"]
            if transaction["state"] == "held" and not batch.sandbox
        ]


def key_of(email: str) -> str:
    """Two addresses of the tests are the same when they are equal without blanks, in lower case."""
    return email.strip().lower()
