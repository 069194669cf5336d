"""The tables. Named constraints refuse what the code forbids; each name says what it guards.

`migrations/versions` creates the tables; a test compares the two.
"""

from app.models.base import Base
from app.models.batch import Batch, UnfoldedBatch
from app.models.event import Event, EventLog, UnnumberedEvent
from app.models.member import Member, MemberAction, MemberSession, ServiceSecret
from app.models.organization import ApiKey, Organization, Refill
from app.models.reversal import Reversal, ReversalEntry
from app.models.transaction import ADDRESS_HASH, ID_RANGE, TRANSACTION_ID, Transaction
from app.models.upload import Upload, UploadPart
from app.models.user import User
from app.models.webhook import Webhook, WebhookDelivery

__all__ = [
    "ADDRESS_HASH",
    "ID_RANGE",
    "TRANSACTION_ID",
    "ApiKey",
    "Base",
    "Batch",
    "Event",
    "EventLog",
    "Member",
    "MemberAction",
    "MemberSession",
    "Organization",
    "Refill",
    "Reversal",
    "ReversalEntry",
    "ServiceSecret",
    "Transaction",
    "UnfoldedBatch",
    "UnnumberedEvent",
    "Upload",
    "UploadPart",
    "User",
    "Webhook",
    "WebhookDelivery",
]
