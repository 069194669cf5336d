"""The decision whether points may be issued, and to how many: the same for verify and for send."""

from dataclasses import dataclass

from app.errors import InsufficientBalance, MayNotIssue
from app.organizations import OrganizationInMode, may_not_issue


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What verify answers. `required` and `available` are points; `refusal` is None when all can be paid."""

    refusal: MayNotIssue | InsufficientBalance | None
    required: int
    available: int
    affordable_recipients: int


def affordable(*, balance: int, amount: int, recipients: int, atomic: bool = False) -> int:
    """Return how many recipients, from the first on, a balance pays `amount` points each.

    With `atomic` the answer is all or none.
    """
    count = min(recipients, balance // amount)
    return 0 if atomic and count < recipients else count


def verify(organization: OrganizationInMode, *, amount: int, recipients: int) -> Verdict:
    """Decide whether the whole issue is possible at this moment. Reads nothing and locks nothing."""
    required = amount * recipients
    count = affordable(balance=organization.balance, amount=amount, recipients=recipients)
    refusal: MayNotIssue | InsufficientBalance | None = may_not_issue(
        is_disabled=organization.is_disabled, is_suspended=organization.is_suspended
    )
    if refusal is None and count < recipients:
        refusal = InsufficientBalance(required=required, available=organization.balance)
    return Verdict(refusal=refusal, required=required, available=organization.balance, affordable_recipients=count)
