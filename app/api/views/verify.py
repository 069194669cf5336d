"""`POST /v1/points/verify` and `/sent-before`: what a send would meet. Read-only, takes no lock."""

from typing import Any

from flask import Response
from pydantic import BaseModel

from app.api.calls import Additions, Answer, call
from app.api.envelope import success, verdict_payload
from app.api.openapi.examples import ALL_OR_NOBODY, ISSUES, SUSPENDED
from app.api.refusals import refusal
from app.api.requests.send_headers import end_connection, idempotency_key, rehearsal
from app.api_keys import Caller
from app.batches import key_limits, sent_lately
from app.batches.errors import InsufficientBalance, KeyLimit, StillComparing
from app.batches.fields import VERIFY
from app.batches.request import IssueRequest, read_issue_request
from app.batches.sent_lately import NAMED_MAX, SentLately, alike
from app.batches.verify import RATE_LIMITED, SILENT, UNAVAILABLE, as_rehearsed, refusal_of
from app.batches.verify import verify as verdict_of
from app.noun_fields import Points, says, says_one_of
from app.organizations import MAY_NOT_ISSUE
from app.postgres.database import single_statement, transaction
from app.values.key_bounds import SEND

_TOO_LOW = InsufficientBalance(required=100, available=60)


class Verdict(BaseModel):
    """Whether the whole issue is possible now."""

    validated: bool = says("True: it is possible.", True)
    error: str | None = says("Why not, as a sentence; null when it is possible.", None)


class VerifyAdditions(Additions):
    """The verdict, for programs."""

    code: str | None = says_one_of(
        (InsufficientBalance.code, KeyLimit.code, *MAY_NOT_ISSUE),
        "Why not, as a stable word; null when it is possible.",
        None,
    )
    required: Points = says("Points for all recipients together.", 100)
    available: Points = says("The balance of the organization.", 1_000)
    affordable_recipients: int = says("How many recipients, from the first on, the balance pays.", 2, ge=0)
    awaits_approval: bool = says("True: the send would await an approval.", False)


class SentBefore(BaseModel):
    """How many of the recipients were sent the same lately, each counted once, by what was most alike."""

    days: int = says("How far back the batches were compared, from now.", 30, ge=1)
    recipients: int = says("The sum of the next three.", 2, ge=0)
    same: int = says("The same amount with the same label, or both without a label.", 2, ge=0)
    same_label: int = says("Another amount with the same label.", 0, ge=0)
    same_amount: int = says("The same amount with another label.", 0, ge=0)
    batch_count: int = says("How many batches these are in.", 1, ge=0)
    batches: list[alike.model] = says(  # type: ignore[name-defined]
        f"Up to {NAMED_MAX} of them, those with the most of the recipients first."
    )
    complete: bool = says("False: there were so many batches that only the newest ones were compared.", True)


@call(
    "POST /v1/points/verify",
    "Ask whether an issue is possible",
    group="Points",
    scopes=(SEND,),
    headers=["Points-Rehearse"],
    body=VERIFY,
    read=read_issue_request,
    sent=ISSUES | ALL_OR_NOBODY,
    answers=Answer(
        about="The verdict.",
        data=Verdict,
        beside=VerifyAdditions,
        schema="VerifyAnswer",
        examples={
            "possible": {},
            "balance_too_low": {"validated": False, "error": _TOO_LOW.sentence},
            "may_not_issue": {"validated": False, "error": SUSPENDED.sentence},
        },
        examples_beside={
            "balance_too_low": {"code": _TOO_LOW.code, "available": 60, "affordable_recipients": 1},
            "may_not_issue": {"code": SUSPENDED.code},
        },
    ),
)
def verify(who: Caller, request: IssueRequest) -> Response:
    """A check only: nothing is written and nothing is reserved. The body and its faults are those of a send. A refusal
    is also 200, with `validated: false`: the balance does not pay the whole batch, the organization is disabled or
    suspended, or the batch is for more points than the key may send.
    """
    named = rehearsal()
    if named in (RATE_LIMITED, UNAVAILABLE) and (rehearsed := refusal_of((named,))) is not None:
        raise rehearsed
    if named == SILENT:
        end_connection()
    organization = as_rehearsed(who.organization, request, named) if who.sandbox else who.organization
    verdict = verdict_of(organization, request, _limit_of_key(who, request))
    return success(
        verdict_payload(verdict),
        code=None if verdict.refusal is None else verdict.refusal.code,
        required=verdict.required,
        available=verdict.available,
        affordable_recipients=verdict.affordable_recipients,
        awaits_approval=verdict.would_await(who.approval_above),
    )


def _limit_of_key(who: Caller, request: IssueRequest) -> KeyLimit | None:
    if who.bounds.daily_limit is None:  # No connection is taken for the others.
        return key_limits.refusal(who.bounds, request.required)
    with single_statement() as connection:
        return key_limits.refusal_now(connection, who, request.required)


@call(
    "POST /v1/points/sent-before",
    "Ask who was sent the same lately",
    group="Points",
    scopes=(SEND,),
    headers=["Idempotency-Key"],
    first=lambda _: idempotency_key(),
    body=VERIFY,
    read=read_issue_request,
    sent=ISSUES,
    answers=Answer(
        about="How many were, and in which batches.",
        data=SentBefore,
        examples={
            "sent_before": {},
            "not_sent_before": {"recipients": 0, "same": 0, "batch_count": 0, "batches": []},
        },
    ),
    refuses=[
        refusal(
            "Comparing",
            "Another such call of the organization is being answered, or the database is out of reach. Make the call"
            " again.",
            StillComparing(),
        )
    ],
)
def sent_before(who: Caller, request: IssueRequest) -> dict[str, Any]:
    """A check only: nothing is written. The body and its faults are those of verify. Each recipient is compared with
    what the organization has sent to the same address, in the key's mode, within 30 days: the amount and the label.
    What is scheduled or queued counts; what was not debited, cancelled or taken back does not. If both have a
    `reference`, and other ones, they are not alike.

    Give it the `Idempotency-Key` that the send will have: a batch that has it already is not counted, because the send
    would be answered with that batch. The calls of an organization are answered one at a time.
    """
    with transaction() as connection:
        lately = sent_lately.of_request(
            connection, request, **who.scope._asdict(), but_key=idempotency_key(), sent_by=who.sent_by
        )
    return _payload(lately)


def _payload(lately: SentLately) -> dict[str, Any]:
    """Who was sent the same lately, and in which batches."""
    return {
        "days": lately.days,
        "recipients": lately.recipients,
        "same": lately.same,
        "same_label": lately.same_label,
        "same_amount": lately.same_amount,
        "batch_count": lately.batch_count,
        "batches": list(map(alike.payload, lately.batches)),
        "complete": lately.is_whole,
    }
