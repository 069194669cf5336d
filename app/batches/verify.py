"""Verify's decision: whether points may be issued, and to how many recipients.

Who may issue is decided by the same function for verify and for send (`app.organizations.may_not_issue`), and so is
what a balance pays, by a function here and its twin in the database.
"""

from collections.abc import Collection
from dataclasses import dataclass

from app.batches.errors import InsufficientBalance, KeyLimit
from app.batches.request import IssueRequest
from app.errors import MayNotIssue, OutOfReach, PointsError, RateLimited
from app.organizations import OrganizationInMode, may_not_issue


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What verify answers. `required` and `available` are points; `refusal` is None when all can be paid."""

    refusal: MayNotIssue | KeyLimit | InsufficientBalance | None
    required: int
    available: int
    affordable_recipients: int

    def would_await(self, approval_above: int | None) -> bool:
        """Tell whether the send would be accepted, and await an approval as one of more points than this (None: no)."""
        is_accepted = self.refusal is None or isinstance(self.refusal, InsufficientBalance)
        return is_accepted and approval_above is not None and self.required > approval_above


def verify(organization: OrganizationInMode, request: IssueRequest, limit: KeyLimit | None = None) -> Verdict:
    """Decide whether the whole issue is possible now, without reading or locking anything.

    Args:
        limit: why the caller's key may not send it.
    """
    recipients, paid = len(request.emails), request.paid_by(organization.balance)
    return verdict_of(organization, required=request.required, recipients=recipients, paid=paid, limit=limit)


def verdict_of(
    organization: OrganizationInMode, *, required: int, recipients: int, paid: int, limit: KeyLimit | None = None
) -> Verdict:
    """Return the verdict on an issue of so many points, of whose recipients the balance pays the first `paid`."""
    may_not = may_not_issue(is_disabled=organization.is_disabled, is_suspended=organization.is_suspended)
    refusal: MayNotIssue | KeyLimit | InsufficientBalance | None = may_not or limit
    if refusal is None and paid < recipients:
        refusal = InsufficientBalance(required=required, available=organization.balance)
    return Verdict(refusal=refusal, required=required, available=organization.balance, affordable_recipients=paid)


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
    """Return the part of a balance that pays the recipients before the reserved address, as `issue.sql` does."""
    if INSUFFICIENT_RECIPIENT not in request.email_keys:
        return balance
    place = request.email_keys.index(INSUFFICIENT_RECIPIENT)
    return min(balance, request.points_of_first(place))
