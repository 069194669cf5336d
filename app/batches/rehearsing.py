"""Rehearsing: with a development key, a reserved recipient or a header makes a call fail as a live one may."""

from collections.abc import Collection

from app.batches.request import IssueRequest
from app.errors import OutOfReach, PointsError, RateLimited
from app.organizations import OrganizationInMode, may_not_issue

DOMAIN = "sandbox.points.test"
# What can be rehearsed: the words of the header, and the local parts of the reserved recipients.
WORDS = ("suspended", "disabled", "insufficient", "accepted", "unavailable", "silent", "rate_limited")
SUSPENDED, DISABLED, INSUFFICIENT, ACCEPTED, UNAVAILABLE, SILENT, RATE_LIMITED = WORDS
# The recipient before which a balance ends, as `app/ledger/issue.sql` looks for it.
INSUFFICIENT_RECIPIENT = f"{INSUFFICIENT}@{DOMAIN}"
_RESERVED = frozenset(f"{word}@{DOMAIN}" for word in WORDS)


def rehearsed_by(request: IssueRequest) -> frozenset[str]:
    """Return what the reserved recipients of a request rehearse, in words."""
    return frozenset(email.partition("@")[0] for email in _RESERVED.intersection(request.email_keys))


def refusal_of(rehearsed: Collection[str]) -> PointsError | None:
    """Return the error of a send that rehearses this; None if it is accepted."""
    if RATE_LIMITED in rehearsed:
        return RateLimited()
    if UNAVAILABLE in rehearsed:
        return OutOfReach()
    return may_not_issue(is_disabled=DISABLED in rehearsed, is_suspended=SUSPENDED in rehearsed)


def as_rehearsed(organization: OrganizationInMode, request: IssueRequest, named: str | None) -> OrganizationInMode:
    """Return the organization as verify sees it, with the state and the balance that a call rehearses.

    Args:
        named: what its header names.
    """
    rehearsed = rehearsed_by(request) | {named}
    return organization._replace(
        is_disabled=organization.is_disabled or DISABLED in rehearsed,
        is_suspended=organization.is_suspended or SUSPENDED in rehearsed,
        balance=0 if named == INSUFFICIENT else _balance_for(request, organization.balance),
    )


def _balance_for(request: IssueRequest, balance: int) -> int:
    """Return the part of a balance that pays the recipients before the reserved one, as `app/ledger/issue.sql` does."""
    if INSUFFICIENT_RECIPIENT not in request.email_keys:
        return balance
    place = request.email_keys.index(INSUFFICIENT_RECIPIENT)
    return min(balance, request.points_of_first(place))
