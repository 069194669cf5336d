"""Lists in the console: checking a list, its cost, and issuing it."""

from dataclasses import replace
from io import BytesIO
from itertools import accumulate
from typing import Any

import orjson
from sqlalchemy import Connection

from app.api.requests.issue import parse_issue_request
from app.api_keys import Caller
from app.batches import accept as acceptance
from app.batches import verify
from app.batches.accept import Acceptance, IssueRequest, Send, SendingMember
from app.console.caller import record_action
from app.errors import InsufficientBalance, InvalidRequest, NotFound, PointsError, Refused
from app.members import actions
from app.recipient_files import ColumnUnclear
from app.recipient_files.checking import AmountsMissing, Checked, check
from app.settings import settings
from app.uploads import parts as upload_parts
from app.uploads import uploads
from app.uploads.uploads import Asked, UploadRow
from app.values.numbers import counted

# The most batches of one list. They are accepted in one transaction.
PARTS_MAX = 100


def look_at(content: bytes, name: str, asked: Asked) -> tuple[Checked | str, dict[str, Any]]:
    """Check a list; return its content or the open question, and what the page of the check shows.

    Raises:
        Refused: the list cannot be read, has no recipients, or is too long.
    """
    limits = settings()
    try:
        found = check(
            BytesIO(content),
            name,
            column=asked.column,
            amount=asked.amount,
            label=asked.label,
            amount_max=limits.amount_max,
            size=limits.recipients_max,
        )
    except ColumnUnclear as error:
        if not error.choices:
            raise Refused(error.sentence) from None
        return uploads.COLUMN, {"question": error.sentence, "choices": list(error.choices.items())}
    except AmountsMissing as error:
        return uploads.AMOUNT, {"question": error.sentence}
    if len(found.parts) > PARTS_MAX:
        most = PARTS_MAX * limits.recipients_max
        raise Refused(f"{name} has {counted(found.recipients, 'recipient')}; one list may have at most {most}.")
    return found, {
        "columns": found.columns,
        "unused": found.unused,
        "first": found.first,
        "last": found.last,
        "campaign": found.campaign,
    }


def cost(connection: Connection, who: Caller, upload: UploadRow) -> verify.Verdict:
    """Return verify's answer for a whole list: each part gets the balance that the parts before it leave."""
    assert upload.points is not None, "it is checked"
    left, paid, refusal = who.organization.balance, 0, None
    for number in range(1, upload_parts.count(connection, upload.id) + 1):
        request = _for_verify(upload, upload_parts.find(connection, upload.id, number))
        verdict = verify.verify(replace(who.organization, balance=left), request)
        refusal = refusal or verdict.refusal
        paid += verdict.affordable_recipients
        left -= _points_of_the_first(request, verdict.affordable_recipients)
    if isinstance(refusal, InsufficientBalance):
        refusal = InsufficientBalance(required=upload.points, available=who.organization.balance)
    return verify.Verdict(
        refusal=refusal, required=upload.points, available=who.organization.balance, affordable_recipients=paid
    )


def _for_verify(upload: UploadRow, part: upload_parts.StoredPart) -> IssueRequest:
    """Return a part as far as verify needs it: the number of recipients, and the points for each."""
    emails = [item.email for item in part.items]
    amounts = [item.amount or upload.amount or 0 for item in part.items]
    totals = list(accumulate(amounts)) if upload.amount is None else None
    return IssueRequest(
        emails=emails, email_keys=emails, amount=upload.amount, running_totals=totals, atomic=False, label=None
    )


def _points_of_the_first(request: IssueRequest, count: int) -> int:
    if count == 0:
        return 0
    return (request.amount or 0) * count if request.running_totals is None else request.running_totals[count - 1]


def request_of(upload: UploadRow, part: upload_parts.StoredPart) -> IssueRequest:
    """Return a part as the request that a caller of the API would make, checked by the same rules.

    Raises:
        Refused: a limit was lowered after the list was checked.
    """
    own = not all(item.is_plain for item in part.items)
    body = {
        **({"items": [item.body for item in part.items]} if own else {"recipients": [i.email for i in part.items]}),
        "amount": upload.amount,
        "label": upload.label,
        "expect": {
            "recipients": len(part.items),
            "amount": sum((upload.amount if item.amount is None else item.amount) or 0 for item in part.items),
        },
    }
    try:
        return parse_issue_request(orjson.dumps(body), settings())
    except InvalidRequest as error:
        field, sentences = next(iter(error.faults.items()))
        raise Refused(f"The list can no longer be sent as it was checked ({field}): {sentences[0]}") from None


class ListChanged(Refused):
    """The list was changed after its page was shown."""

    def __init__(self) -> None:
        super().__init__("The list was changed in another window after this page was shown. Look at it again.")


def issue(connection: Connection, who: Caller, token: str, *, recipients: int, points: int) -> list[Acceptance] | None:
    """Accept a whole list as queued batches; the drain issues them in the list's order. None: it was sent before.

    A second request for the same list waits at the list's row for this transaction, and then finds the list sent.

    Args:
        recipients: the number of recipients that the page has shown; `points` is the sum that it has shown.

    Raises:
        NotFound: there is no such list.
        ListChanged: the list has other numbers now.
        PointsError: nothing was accepted.
    """
    upload = uploads.find(connection, token, organization_id=who.organization.id, sandbox=who.sandbox, lock=True)
    if upload is None:
        raise NotFound("list", token)
    if upload.sent_at is not None:
        return None
    if (upload.recipients, upload.points) != (recipients, points):
        raise ListChanged
    assert who.member_id is not None, "a member sends it"
    member, accepted = SendingMember(who.member_id, who.sandbox), []
    for number in range(1, upload_parts.count(connection, upload.id) + 1):
        request = request_of(upload, upload_parts.find(connection, upload.id, number))
        send = Send(b"", request, f"console-{token}-{number}")
        outcome = acceptance.accept(connection, [send], member)[0]
        if isinstance(outcome, PointsError):
            raise outcome
        assert outcome is not None and not outcome.existed, "nobody else has the row of this list"  # noqa: PT018
        accepted.append(outcome)
    uploads.mark_sent(connection, upload.id, [one.batch_id for one in accepted])
    detail = f"{counted(points, 'point')} to {counted(recipients, 'recipient')}"
    if len(accepted) > 1:
        detail += f", in {len(accepted)} batches"
    record_action(connection, actions.SENT, accepted[0].batch_id, sandbox=who.sandbox, detail=detail)
    return accepted
