"""The bodies of answers about the sandbox."""

from datetime import datetime
from typing import Any

from app.ledger.sandbox import SandboxUser
from app.values.timestamps import timestamp


def clock_payload(now: datetime) -> dict[str, Any]:
    """The time of the sandbox."""
    return {"now": timestamp(now)}


def user_payload(user: SandboxUser) -> dict[str, Any]:
    """A user of the sandbox."""
    return {**user._asdict(), "created_at": timestamp(user.created_at)}
