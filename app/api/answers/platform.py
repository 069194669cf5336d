"""The bodies of answers to the platform, built by pure functions."""

from dataclasses import asdict
from typing import Any

from app.api_keys import StoredKey
from app.ledger.claim import Claimed
from app.ledger.registering import Outcome
from app.noun import exact_sum
from app.pages.action_pages import ActionRow
from app.pages.entry_pages import EntryRow
from app.users import RegisteredUser
from app.values.timestamps import timestamp


def user_payload(user: RegisteredUser) -> dict[str, Any]:
    """PlatformUser: a user with its balance."""
    return {
        "id": user.id,
        "email": user.email,
        "first_name": user.first_name,
        "last_name": user.last_name,
        "external_id": user.external_id,
        "balance": exact_sum(user.balance),
        "created_at": timestamp(user.created_at),
    }


def claimed_payload(claimed: Claimed) -> dict[str, Any]:
    """What was held for an address and is credited now."""
    return {"transactions": claimed.transactions, "amount": exact_sum(claimed.points)}


def outcome_payload(outcome: Outcome) -> dict[str, Any]:
    """What became of one of many users."""
    user = None if outcome.user is None else user_payload(outcome.user)
    return {"user": user, "status": outcome.status, "errors": outcome.faults}


def entry_payload(entry: EntryRow) -> dict[str, Any]:
    """Entry: a credit of a user, or what was taken back of one."""
    return entry.payload() | {"created_at": timestamp(entry.created_at)}


def action_payload(action: ActionRow) -> dict[str, Any]:
    """Who did what, and when."""
    return action.payload() | {"created_at": timestamp(action.created_at)}


def key_payload(key: StoredKey) -> dict[str, Any]:
    """A key of an organization, by its first characters."""
    moments = {name: getattr(key, name) for name in ("created_at", "last_used_at", "revoked_at")}
    return asdict(key) | {name: moment and timestamp(moment) for name, moment in moments.items()} | key.bounds.payload()
