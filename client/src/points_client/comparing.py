"""Whether an answer is about what was sent: the only proof that it is the answer to this call."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from points_client.results import Transaction
from points_client.reversal_results import ReversedTransaction

_ERASED = re.compile(r"erased-\d+")  # The address of a user who was erased since.


def is_about(transactions: Sequence[Transaction], body: Mapping[str, Any]) -> bool:
    """Tell whether transactions are those of a send: its addresses, references and amounts, in its order."""
    items = body.get("items") or [{"email": email} for email in body.get("recipients") or ()]
    return len(transactions) == len(items) and all(
        _is_like(transaction, item, body.get("amount")) for transaction, item in zip(transactions, items, strict=True)
    )


def is_of(transactions: Sequence[ReversedTransaction], body: Mapping[str, Any]) -> bool:
    """Tell whether transactions are those of a reversal, in its order; of a batch, none is known."""
    return "transactions" not in body or [one.id for one in transactions] == body["transactions"]


def _is_like(transaction: Transaction, item: Mapping[str, Any], amount: object) -> bool:
    return (
        transaction.reference == (item.get("reference") or None)
        and transaction.amount == (item.get("amount") or amount)
        and _is_address_of(transaction.email, str(item.get("email")))
    )


def _is_address_of(answered: str, sent: str) -> bool:
    """Compare addresses as the service does: a replay shows the address as it was written the first time."""
    sent = sent.strip()
    return answered == sent or _normal(answered) == _normal(sent) or bool(_ERASED.fullmatch(answered))


def _normal(email: str) -> str:
    local, _, domain = unicodedata.normalize("NFKC", email).lower().rpartition("@")
    try:
        return f"{local}@{domain.encode('idna').decode()}"
    except UnicodeError:
        return f"{local}@{domain}"
