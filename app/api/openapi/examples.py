"""The examples of the description: what is sent, and what is answered. A test gets each from a running service.

One story runs through them: Acme has 1,000 points, Ada has an account, Grace has none yet.
"""

from typing import Any

from app.api.envelope import INTERFACE_VERSION

_CREATED = "2026-01-05T08:00:00.000000Z"
_ISSUED = "2026-01-31T09:30:00.482913Z"
_ACCEPTED = "2026-01-31T09:30:00.471006Z"

ADA, GRACE = "ada@example.com", "grace@example.com"

BODIES: dict[str, Any] = {
    "to_two": {"recipients": [ADA, GRACE], "amount": 50},
    "to_one": {"recipient": ADA, "amount": 50},
    "all_or_nobody": {"recipients": [ADA, GRACE], "amount": 50, "atomic": True, "label": "January"},
}


def _success(data: dict[str, Any], **additional: Any) -> dict[str, Any]:
    return {
        "success": True,
        "data": data,
        "errors": None,
        "additional_data": {"version": INTERFACE_VERSION, **additional},
    }


def _organization(balance: int, last_refill: int = 1_000) -> dict[str, Any]:
    return {
        "id": 1,
        "name": "Acme",
        "is_disabled": False,
        "is_suspended": False,
        "balance": balance,
        "last_refill": last_refill,
        "created_at": _CREATED,
    }


def _transaction(place: int, balance: int, *, last_refill: int = 1_000, **changes: Any) -> dict[str, Any]:
    """Return the transaction of Ada (0), credited, or of Grace (1), held, as it is unless something is changed."""
    ada = place == 0
    transaction = {
        "id": 131_072 + place,
        "organization": _organization(balance, last_refill),
        "recipient": {"id": 7, "first_name": "Ada", "last_name": "Lovelace"} if ada else None,
        "email": ADA if ada else GRACE,
        "amount": 50,
        "debited": True,
        "credited": ada,
        "allocated": ada,
        "sender": None,
        "label": None,
        "sandbox": False,
        "created_at": _ISSUED,
    }
    return transaction | changes


_ISSUE = {"transactions": [_transaction(0, 950), _transaction(1, 900)], "amount": 100, "current_balance": 900}
_PART = {
    "transactions": [
        _transaction(0, 10, last_refill=60),
        _transaction(1, 10, last_refill=60, debited=False),
    ],
    "amount": 50,
    "current_balance": 10,
}
_NOT_ISSUED = {"issued_at": None, "transactions": None, "amount": None, "current_balance": None}

ANSWERS: dict[str, Any] = {
    "possible": _success(
        {"validated": True, "error": None},
        code=None,
        required=100,
        available=1_000,
        affordable_recipients=2,
    ),
    "balance_too_low": _success(
        {"validated": False, "error": "The issue needs 100 points, but the balance is 60."},
        code="insufficient_balance",
        required=100,
        available=60,
        affordable_recipients=1,
    ),
    "may_not_issue": _success(
        {"validated": False, "error": "The organization is suspended and cannot issue points until it is resumed."},
        code="organization_suspended",
        required=100,
        available=1_000,
        affordable_recipients=2,
    ),
    "issued": _success(_ISSUE, batch_id=1),
    "issued_in_part": _success(_PART, batch_id=1),
    "queued": _success({"batch_id": 1, "status": "queued"}, batch_id=1),
    "batch_issued": _success(
        {"batch_id": 1, "status": "issued", "created_at": _ACCEPTED, "issued_at": _ISSUED, **_ISSUE}
    ),
    "batch_queued": _success({"batch_id": 1, "status": "queued", "created_at": _ACCEPTED, **_NOT_ISSUED}),
    "batch_refused": _success({"batch_id": 1, "status": "refused", "created_at": _ACCEPTED, **_NOT_ISSUED}),
    "batches": _success(
        {
            "batches": [
                {
                    "batch_id": 1,
                    "status": "issued",
                    "created_at": _ACCEPTED,
                    "issued_at": _ISSUED,
                    "amount": 100,
                    "current_balance": 900,
                }
            ],
            "next_cursor": None,
        }
    ),
    "transactions": _success({"transactions": [_transaction(1, 900), _transaction(0, 950)], "next_cursor": None}),
    "transaction": _success(_transaction(0, 950)),
    "sandbox_reset": _success(_organization(1_000_000, last_refill=1_000_000)),
    "organization": _success(_organization(1_000)),
    "alive": _success({"status": "ok"}),
    "ready": _success({"status": "ready"}),
}
