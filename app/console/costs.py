"""What a list of the console costs now, and the digest of all that the page of its last step shows."""

import hashlib
from datetime import datetime
from typing import NamedTuple

import orjson
from sqlalchemy import Connection

from app.api_keys import Caller
from app.batches import verify
from app.batches.errors import InsufficientBalance
from app.batches.schedule import now_of
from app.console.blueprints import current_zone
from app.console.faults import in_words
from app.errors import MayNotIssue, PointsError, Refused
from app.organizations import get_whole, may_not_issue
from app.uploads import parts as upload_parts
from app.uploads.sent_before import SentBefore, sent_before
from app.uploads.uploads import UploadRow
from app.values.numbers import counted, points
from app.values.timestamps import bounds_fault, timestamp


class Cost(NamedTuple):
    """What a list costs now: verify's answer for the whole list, and whom the balance pays of its batches.

    `refusal` is why no button could issue or schedule anything of it; None when one can. `seen` is a digest of all that
    the last page shows, so that its button does just that. `before` tells of earlier sends to the recipients. Batches
    of more than `approval_above` points await an approval; None: none does.
    """

    verdict: verify.Verdict
    payable: upload_parts.Payable
    before: SentBefore
    refusal: PointsError | None
    approval_above: int | None
    seen: str


def cost(connection: Connection, who: Caller, upload: UploadRow) -> Cost:
    """Return what a checked list costs: each batch gets the balance that the batches before it leave."""
    assert upload.recipients is not None, "it is checked"
    assert upload.points is not None, "it is checked"
    organization = who.organization
    payable = upload_parts.payable(connection, upload.id, amount=upload.amount, balance=organization.balance)
    refusal: MayNotIssue | InsufficientBalance | None = may_not_issue(
        is_disabled=organization.is_disabled, is_suspended=organization.is_suspended
    )
    if refusal is None and payable.recipients < upload.recipients:
        refusal = InsufficientBalance(required=upload.points, available=organization.balance)
    verdict = verify.Verdict(
        refusal=refusal,
        required=upload.points,
        available=organization.balance,
        affordable_recipients=payable.recipients,
    )
    late = None if upload.send_at is None else _late(connection, upload, upload.send_at)
    before = sent_before(connection, upload)
    above = get_whole(connection, organization.id).approval_above
    seen = _seen(upload, payable, before, above)
    return Cost(verdict, payable, before, _refusal(upload, verdict, late), above, seen)


def _late(connection: Connection, upload: UploadRow, send_at: datetime) -> Refused | None:
    """Return what is wrong with the time of a list, by the clock of its mode."""
    fault = bounds_fault(send_at, now=now_of(connection, upload.organization_id, sandbox=upload.sandbox))
    return None if fault is None else Refused(late_sentence(fault))


def _refusal(upload: UploadRow, verdict: verify.Verdict, late: Refused | None) -> PointsError | None:
    """Return why nothing of a list can be issued; what the balance of a later time pays is not known."""
    if isinstance(verdict.refusal, MayNotIssue):
        return verdict.refusal
    if upload.send_at is not None:
        return late
    if verdict.refusal is None or (verdict.affordable_recipients > 0 and not upload.atomic):
        return None
    if not verdict.affordable_recipients:
        return Refused("The balance is too low for anybody on this list.")
    return Refused(
        f"The balance pays {points(verdict.affordable_recipients)} of {counted(upload.recipients or 0, 'recipient')},"
        " so with “all or nobody” nothing is issued."
    )


def late_sentence(fault: str) -> str:
    """Return a fault of `send_at` for a person, who sees no such field."""
    return in_words(fault, "The time to issue it")


def _seen(upload: UploadRow, payable: upload_parts.Payable, before: SentBefore, approval_above: int | None) -> str:
    scope = (upload.id, upload.sandbox, upload.sheet, upload.column)
    settled = (upload.amount, upload.label, upload.recipients, upload.points, approval_above)
    when = None if upload.send_at is None else (timestamp(upload.send_at), current_zone())
    lately = before.lately
    earlier = [
        *(before.same_list or ()),
        *(lately.same, lately.same_label, lately.same_amount, lately.batch_count),
        *([batch.id, batch.recipients] for batch in lately.batches),
    ]
    return hashlib.sha256(orjson.dumps([*scope, *settled, *payable, upload.atomic, when, earlier])).hexdigest()
