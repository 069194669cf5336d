"""Rehearsing: with a development key, a reserved recipient makes a send fail as a live one may."""

from collections.abc import Collection
from dataclasses import replace

from app.batches.request import IssueRequest
from app.errors import OutOfReach, PointsError
from app.organizations import OrganizationInMode, may_not_issue

DOMAIN = "sandbox.points.test"
SUSPENDED, DISABLED, INSUFFICIENT, ACCEPTED, UNAVAILABLE, SILENT = tuple(
    f"{name}@{DOMAIN}" for name in ("suspended", "disabled", "insufficient", "accepted", "unavailable", "silent")
)
_RESERVED = frozenset((SUSPENDED, DISABLED, INSUFFICIENT, ACCEPTED, UNAVAILABLE, SILENT))


def rehearsed_by(request: IssueRequest) -> frozenset[str]:
    """Return the reserved recipients of a request."""
    return _RESERVED.intersection(request.email_keys)


def refusal_of(reserved: Collection[str]) -> PointsError | None:
    """Return the error of a send that its reserved recipients rehearse; None if it is accepted."""
    if UNAVAILABLE in reserved:
        return OutOfReach()
    return may_not_issue(is_disabled=DISABLED in reserved, is_suspended=SUSPENDED in reserved)


def as_rehearsed(organization: OrganizationInMode, request: IssueRequest) -> OrganizationInMode:
    """Return the organization as verify sees it, with the state and the balance that a request rehearses."""
    reserved = rehearsed_by(request)
    return replace(
        organization,
        is_disabled=organization.is_disabled or DISABLED in reserved,
        is_suspended=organization.is_suspended or SUSPENDED in reserved,
        balance=_balance_for(request, organization.balance),
    )


def _balance_for(request: IssueRequest, balance: int) -> int:
    """Return the part of a balance that pays the recipients before `insufficient@`, as `app/ledger/issue.sql` does."""
    if INSUFFICIENT not in request.email_keys:
        return balance
    place = request.email_keys.index(INSUFFICIENT)
    return min(balance, request.points_of_first(place))
