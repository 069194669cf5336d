"""Verify's decision: whether points may be issued, and to how many recipients.

Who may issue is decided by one function for verify and for send (`app.organizations.may_not_issue`). What a balance
pays is decided here and, for a send, in the SQL of `app.ledger.issue`: a second round trip would lock the organization
for longer. A test draws balances and queues and compares the two.
"""

from bisect import bisect_right
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


def affordable(request: IssueRequest, *, balance: int) -> int:
    """Return how many recipients a balance pays, from the first on, up to the first that it cannot pay."""
    if request.running_totals is not None:
        return bisect_right(request.running_totals, balance)
    assert request.amount is not None, "a request has an amount or running totals"
    return min(len(request.emails), balance // request.amount)


def verify(organization: OrganizationInMode, request: IssueRequest, limit: KeyLimit | None = None) -> Verdict:
    """Decide whether the whole issue is possible now, without reading or locking anything.

    Args:
        limit: why the caller's key may not send it.
    """
    required, count = request.required, affordable(request, balance=organization.balance)
    may_not = may_not_issue(is_disabled=organization.is_disabled, is_suspended=organization.is_suspended)
    refusal: MayNotIssue | KeyLimit | InsufficientBalance | None = may_not or limit
    if refusal is None and count < len(request.emails):
        refusal = InsufficientBalance(required=required, available=organization.balance)
    return Verdict(refusal=refusal, required=required, available=organization.balance, affordable_recipients=count)
