"""The story that the examples of several calls share: Acme has 1,000 points, Ada has an account, Grace has none yet."""

from collections.abc import Mapping
from typing import Any

from app.batches.transaction import Transaction
from app.errors import OrganizationSuspended
from app.noun_fields import example
from app.organizations import in_mode
from app.reversals.reversal import reversed_transactions

ADA, GRACE = "ada@example.com", "grace@example.com"
SUSPENDED = OrganizationSuspended()

# Bodies of verify and of send, by name.
ISSUES: dict[str, Mapping[str, Any]] = {
    "to_two": {"recipients": [ADA, GRACE], "amount": 50},
    "to_one": {"recipient": ADA, "amount": 50},
    "to_each": {
        "items": [
            {"email": ADA, "amount": 50, "reference": "order-4711"},
            {"email": GRACE, "amount": 20, "reference": "order-4712"},
        ],
        "label": "January",
        "expect": {"recipients": 2, "amount": 70},
        "metadata": {"run": "2026-01"},
    },
}
ALL_OR_NOBODY: dict[str, Mapping[str, Any]] = {
    "all_or_nobody": {"recipients": [ADA, GRACE], "amount": 50, "atomic": True, "label": "January"}
}


def acme(balance: int, last_refill: int = 1_000) -> dict[str, Any]:
    """Return the organization, with this balance."""
    return example(in_mode.model, balance=balance, last_refill=last_refill)


# Transactions.
CREDITED = example(Transaction, organization=acme(950))
_HELD = {"recipient": None, "email": GRACE, "credited": False, "allocated": False, "state": "held"}
HELD = example(Transaction, id=131_073, organization=acme(900), **_HELD)
HELD_LONGER = HELD | {"organization": acme(950), "held_until": "2026-06-30T00:00:00.000000Z"}

# What a send has issued: to both, to Ada alone, since the balance was too low, and to each its own amount.
_LEFT = {"organization": acme(10, last_refill=60)}
TO_BOTH = {"transactions": [CREDITED, HELD]}
TO_ONE_OF_BOTH = {
    "transactions": [CREDITED | _LEFT, HELD | _LEFT | {"debited": False, "state": "unpaid"}],
    "amount": 50,
    "current_balance": 10,
}
TO_EACH = {
    "transactions": [
        CREDITED | {"label": "January", "reference": "order-4711"},
        HELD | {"label": "January", "reference": "order-4712", "amount": 20, "organization": acme(930)},
    ],
    "amount": 70,
    "current_balance": 930,
}

# What a reversal has taken back: all, and a part of each.
_REVERSED = [
    example(reversed_transactions.model),
    example(reversed_transactions.model, id=131_073, email=GRACE),
]
FROM_BOTH = {"transactions": _REVERSED}
A_PART = {
    "transactions": [transaction | {"reversed": 20} for transaction in _REVERSED],
    "amount": 40,
    "current_balance": 940,
}
