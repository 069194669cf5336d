"""A client of the Points Issuing Service: `Points` and `PlatformPoints`, and `Async…` with the same names."""

from points_client._async.client import AsyncPoints
from points_client._async.consumer import AsyncConsumer
from points_client._async.platform import AsyncPlatformPoints
from points_client._sync.client import Points
from points_client._sync.consumer import Consumer
from points_client._sync.platform import PlatformPoints
from points_client.attempts import RETRIED, Wait
from points_client.errors import (
    Invalid,
    InvalidSignature,
    NoAnswer,
    NotAccepted,
    NotAuthorized,
    PointsError,
    Refused,
)
from points_client.event_results import DeliveredEvent, Delivery, Event, EventPage, Webhook
from points_client.platform_results import (
    Action,
    ActionAuthor,
    ActionOrganization,
    Entry,
    IssuingOrganization,
    Key,
    NewKey,
    NewMember,
    PlatformOrganization,
    PlatformUser,
    Refill,
    RegisteredUser,
)
from points_client.request_results import Request
from points_client.requests import Item
from points_client.results import (
    AlikeBatch,
    Approval,
    Batch,
    Claimed,
    Counts,
    Limits,
    Organization,
    SandboxUser,
    Scheduled,
    Sent,
    SentBefore,
    Transaction,
    User,
    Verified,
)
from points_client.reversal_results import Recoverable, Reversal, Reversed, ReversedTransaction
from points_client.signatures import verify_webhook
from points_client.statement_results import Statement, StatementDay, StatementTotal

__all__ = [
    "RETRIED",
    "Action",
    "ActionAuthor",
    "ActionOrganization",
    "AlikeBatch",
    "Approval",
    "AsyncConsumer",
    "AsyncPlatformPoints",
    "AsyncPoints",
    "Batch",
    "Claimed",
    "Consumer",
    "Counts",
    "DeliveredEvent",
    "Delivery",
    "Entry",
    "Event",
    "EventPage",
    "Invalid",
    "InvalidSignature",
    "IssuingOrganization",
    "Item",
    "Key",
    "Limits",
    "NewKey",
    "NewMember",
    "NoAnswer",
    "NotAccepted",
    "NotAuthorized",
    "Organization",
    "PlatformOrganization",
    "PlatformPoints",
    "PlatformUser",
    "Points",
    "PointsError",
    "Recoverable",
    "Refill",
    "Refused",
    "RegisteredUser",
    "Request",
    "Reversal",
    "Reversed",
    "ReversedTransaction",
    "SandboxUser",
    "Scheduled",
    "Sent",
    "SentBefore",
    "Statement",
    "StatementDay",
    "StatementTotal",
    "Transaction",
    "User",
    "Verified",
    "Wait",
    "Webhook",
    "verify_webhook",
]
