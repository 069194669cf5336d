"""The tables. Their constraints refuse what the code forbids, each under a name that says what it guards.

`migrations/versions` makes them; a test holds the two equal.
"""

from app.models.base import Base
from app.models.batch import Batch, UnfoldedBatch
from app.models.organization import ApiKey, Organization, Refill
from app.models.transaction import ADDRESS_HASH, ERA, TRANSACTION_ID, Transaction
from app.models.user import User

__all__ = [
    "ADDRESS_HASH",
    "ERA",
    "TRANSACTION_ID",
    "ApiKey",
    "Base",
    "Batch",
    "Organization",
    "Refill",
    "Transaction",
    "UnfoldedBatch",
    "User",
]
