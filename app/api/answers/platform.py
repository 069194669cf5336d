"""The bodies of answers to the platform, built by pure functions."""

from dataclasses import asdict
from typing import Any

from app.api.answers.sums import exact_sum
from app.ledger.claim import Claimed
from app.ledger.registering import Outcome
from app.organizations import Refill, WholeOrganization
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


def organization_payload(organization: WholeOrganization) -> dict[str, Any]:
    """PlatformOrganization: an organization in both modes, with its options."""
    return asdict(organization) | {"created_at": timestamp(organization.created_at)}


def refill_payload(refill: Refill) -> dict[str, Any]:
    """A refill, with the balance right after it."""
    return refill._asdict() | {"created_at": timestamp(refill.created_at)}
