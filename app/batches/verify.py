"""Verify's decision: whether points may be issued, and to how many recipients.

Who may issue is decided by one function for verify and for send (`app.organizations.may_not_issue`), and so is what a
balance pays, by one here and by one in the database.
"""

from dataclasses import dataclass

from app.batches.errors import InsufficientBalance, KeyLimit
from app.batches.request import IssueRequest
from app.errors import MayNotIssue
from app.organizations import OrganizationInMode, may_not_issue


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What verify answers. `required` and `available` are points; `refusal` is None when all can be paid."""

    refusal: MayNotIssue | KeyLimit | InsufficientBalance | None
    required: int
    available: int
    affordable_recipients: int


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
