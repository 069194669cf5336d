"""The examples of bodies and answers; each answer fits its description.

All of them share one story: Acme has 1,000 points, Ada has an account, Grace does not have one yet.
"""

from typing import Any

from pydantic import BaseModel

from app.api.calls import CALLS
from app.api.openapi.calls import SUCCESSES
from app.api.openapi.envelopes import ENVELOPES
from app.api.openapi.organization_answers import RegisteredUser
from app.batches.batch import Approval
from app.batches.errors import InsufficientBalance
from app.batches.transaction import Transaction
from app.errors import OrganizationSuspended
from app.ledger.sandbox import NOW
from app.noun import example
from app.organizations import in_mode
from app.pages.entry_pages import entries
from app.reversals.reversal import reversed_transactions

_ADA, _GRACE = "ada@example.com", "grace@example.com"
_SEND_AT = "2026-02-01T09:00:00Z"
_USER = {"email": _ADA, "first_name": "Ada", "last_name": "Lovelace", "external_id": "customer-4711"}

BODIES: dict[str, Any] = {
    "to_two": {"recipients": [_ADA, _GRACE], "amount": 50},
    "to_one": {"recipient": _ADA, "amount": 50},
    "all_or_nobody": {"recipients": [_ADA, _GRACE], "amount": 50, "atomic": True, "label": "January"},
    "to_each": {
        "items": [
            {"email": _ADA, "amount": 50, "reference": "order-4711"},
            {"email": _GRACE, "amount": 20, "reference": "order-4712"},
        ],
        "label": "January",
        "expect": {"recipients": 2, "amount": 70},
        "metadata": {"run": "2026-01"},
    },
    "later": {"recipient": _ADA, "amount": 50, "send_at": _SEND_AT},
    "for_90_days": {"recipient": _GRACE, "amount": 50, "hold_days": 90},
    "longer": {"held_until": "2026-06-30T00:00:00Z"},
    "tomorrow": {"send_at": "2026-02-02T09:00:00Z"},
    "a_rejection": {"reason": "The wrong list"},
}
REVERSE_BODIES: dict[str, Any] = {
    "take_a_batch": {"batch": 1, "reason": "The wrong list"},
    "take_transactions": {"transactions": [131_072, 131_073], "amount": 20, "reason": "The wrong list"},
}

SANDBOX_BODIES: dict[str, Any] = {
    "next_year": {"now": NOW.example},
    "ada": {"email": _ADA, "first_name": "Ada", "last_name": "Lovelace"},
}
PLATFORM_BODIES: dict[str, Any] = {
    "new_user": _USER,
    "new_users": {"users": [_USER, {"email": "grace", "first_name": "Grace", "last_name": "Hopper"}]},
    "changed_user": {"email": "ada@example.org"},
    "new_organization": {"name": "Acme", "balance": 1_000, "held_days": 90},
    "changed_organization": {"is_suspended": True},
    "new_refill": {"amount": 1_000, "reference": "invoice-7"},
    "new_key": {"name": "Till", "sandbox": True},
    "new_member": {"email": "mary@example.com", "first_name": "Mary", "last_name": "Jackson", "role": "admin"},
}
BODIES_OF_DECLARED: dict[str, Any] = {name: body for call in CALLS for name, body in call.sent.items()}


def _answer(envelope: type[BaseModel], data: dict[str, Any], beside: dict[str, Any]) -> dict[str, Any]:
    """Return an example of an envelope, with changes to its data and its additional data."""
    model: dict[str, Any] = {name: field.annotation for name, field in envelope.model_fields.items()}
    changes = {"data": example(model["data"], **data), "additional_data": example(model["additional_data"], **beside)}
    return example(envelope, **changes)


def _acme(balance: int, last_refill: int = 1_000) -> dict[str, Any]:
    return example(in_mode.model, balance=balance, last_refill=last_refill)


_TO_ADA = example(Transaction, organization=_acme(950))
_HELD = {"recipient": None, "email": _GRACE, "credited": False, "allocated": False, "state": "held"}
_TO_GRACE = example(Transaction, id=131_073, organization=_acme(900), **_HELD)
_FOR_LONGER = _TO_GRACE | {"organization": _acme(950), "held_until": "2026-06-30T00:00:00.000000Z"}
_LEFT = {"organization": _acme(10, last_refill=60)}

_BOTH = {"transactions": [_TO_ADA, _TO_GRACE]}
_PART = {
    "transactions": [_TO_ADA | _LEFT, _TO_GRACE | _LEFT | {"debited": False, "state": "unpaid"}],
    "amount": 50,
    "current_balance": 10,
}
_ITEM_OF_ADA = _TO_ADA | {"label": "January", "reference": "order-4711"}
_ITEM_OF_GRACE = _TO_GRACE | {"label": "January", "reference": "order-4712", "amount": 20, "organization": _acme(930)}
_EACH = {"transactions": [_ITEM_OF_ADA, _ITEM_OF_GRACE], "amount": 70, "current_balance": 930}
_FROM_BOTH = {
    "transactions": [
        example(reversed_transactions.model),
        example(reversed_transactions.model, id=131_073, email=_GRACE),
    ]
}
_IN_PART = {
    "transactions": [one | {"reversed": 20} for one in _FROM_BOTH["transactions"]],
    "amount": 40,
    "current_balance": 940,
}
_NOTHING = {"recoverable": 0, "held": 0, "credited": 0, "already_reversed": 2}
_NOT_DONE = {"done_at": None, "transactions": None, "amount": None, "current_balance": None}
_NOT_ISSUED = {"issued_at": None, "counts": None, "transactions": None, "amount": None, "current_balance": None}
_APPROVED = example(Approval)
_LATER = {"send_at": "2026-02-01T09:00:00.000000Z", "final": False, **_NOT_ISSUED}
_NO_ADDRESS = {"users.1.email": ["The email must be an e-mail address: it has no @-sign."]}
_NOT_REGISTERED = {"user": None, "status": "conflict", "errors": _NO_ADDRESS}
_OF_CREDIT = {"type": "reversal", "amount": -20, "reversal_id": 2, "created_at": "2026-02-01T09:00:00.000000Z"}
_TOO_LOW = InsufficientBalance(required=100, available=60)
_SUSPENDED = OrganizationSuspended()

# By the name of the example: its differences from its model's example, in `data` and in `additional_data`.
_CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "balance_too_low": (
        {"validated": False, "error": _TOO_LOW.sentence},
        {"code": _TOO_LOW.code, "available": 60, "affordable_recipients": 1},
    ),
    "not_sent_before": ({"recipients": 0, "same": 0, "batch_count": 0, "batches": []}, {}),
    "may_not_issue": ({"validated": False, "error": _SUSPENDED.sentence}, {"code": _SUSPENDED.code}),
    "issued": (_BOTH, {}),
    "issued_in_part": (_PART, {}),
    "issued_to_each": (_EACH, {}),
    "scheduled": ({"status": "scheduled"}, {}),
    "batch_issued": (_BOTH, {}),
    "batch_queued": ({"status": "queued", "final": False, **_NOT_ISSUED}, {}),
    "batch_scheduled": ({"status": "scheduled", **_LATER}, {}),
    "batch_moved": ({"status": "scheduled", **_LATER, "send_at": "2026-02-02T09:00:00.000000Z"}, {}),
    "batch_cancelled": ({"status": "cancelled", **_LATER, "final": True}, {}),
    "awaiting_approval": ({"status": "awaiting_approval"}, {}),
    "batch_awaiting_approval": ({"status": "awaiting_approval", "final": False, **_NOT_ISSUED}, {}),
    "batch_approved": ({"status": "queued", "final": False, "approval": _APPROVED, **_NOT_ISSUED}, {}),
    "batch_rejected": ({"status": "rejected", "approval": _APPROVED | {"reason": "The wrong list"}, **_NOT_ISSUED}, {}),
    "batch_refused": ({"status": "refused", "refusal": _SUSPENDED.code, **_NOT_ISSUED}, {}),
    "nothing_left": ({"validated": False, "error": "Nothing is left that could be taken back."}, _NOTHING),
    "taken_back": (_FROM_BOTH, {}),
    "taken_in_part": (_IN_PART, {}),
    "reversal_done": (_FROM_BOTH, {}),
    "reversal_queued": ({"status": "queued", "final": False, **_NOT_DONE}, {}),
    "transactions": ({"transactions": [_TO_GRACE, _TO_ADA]}, {}),
    "transaction": (_TO_ADA, {}),
    "extended": (_FOR_LONGER, {}),
    "known_user": ({}, {"claimed": {"transactions": 0, "amount": 0}}),
    "user_changed": ({"email": "ada@example.org"}, {}),
    "user_erased": (dict.fromkeys(("email", "first_name", "last_name"), "erased-7") | {"external_id": None}, {}),
    "registered_users": ({"users": [example(RegisteredUser), example(RegisteredUser, **_NOT_REGISTERED)]}, {}),
    "entries": ({"entries": [example(entries.model, **_OF_CREDIT), example(entries.model)]}, {}),
    "organization_suspended": ({"is_suspended": True}, {}),
    "known_in_sandbox": ({}, {"claimed": {"transactions": 0, "amount": 0}}),
    "sandbox_reset": (_acme(1_000_000, last_refill=1_000_000), {}),
    **{name: (dict(changes), {}) for call in CALLS for name, changes in call.answer.examples.items()},
}

ANSWERS: dict[str, Any] = {
    name: _answer(ENVELOPES[answer["model"]], *_CHANGES.get(name, ({}, {})))
    for answer in SUCCESSES
    for name in answer["examples"]
}
assert _CHANGES.keys() <= ANSWERS.keys()
