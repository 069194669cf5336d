"""Lists in the console: what a list costs now, the digest of all that the last page shows, and issuing it."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import orjson
from sqlalchemy import Connection

from app.actions import log as actions
from app.api_keys import Caller
from app.batches import verify
from app.batches.accept import Acceptance, Send, SendingMember, accept, lock_schedules
from app.batches.batch import AWAITING_APPROVAL
from app.batches.fields import SEND
from app.batches.request import IssueRequest, read_issue_request
from app.batches.schedule import now_of
from app.console.blueprints import current_zone
from app.console.caller import record
from app.console.forms import in_words
from app.console.views.activity import latest
from app.errors import InvalidRequest, MayNotIssue, PointsError, Refused
from app.organizations import WholeOrganization, get_whole
from app.recipient_files.recipients import body_of
from app.settings import settings
from app.uploads import parts as upload_parts
from app.uploads import uploads
from app.uploads.sent_before import SentBefore, sent_before
from app.uploads.uploads import UploadRow
from app.values.numbers import counted, points
from app.values.timestamps import bounds_fault, timestamp
from app.values.zones import ZONE_OF_ALL, moment_in


def request_of(upload: UploadRow, part: upload_parts.StoredPart) -> IssueRequest:
    """Return a part as the request that a caller of the API would make, checked by the same rules.

    Raises:
        Refused: a limit was lowered after the list was checked.
    """
    body = body_of(part.items, amount=upload.amount, label=upload.label, atomic=upload.atomic)
    body["send_at"] = upload.send_at and timestamp(upload.send_at)
    try:
        return read_issue_request(body, settings(), SEND)
    except InvalidRequest as error:
        name, sentences = next(iter(error.faults.items()))
        words = {"amount": "The points of a recipient", "email": "The address of a recipient"}
        last = name.rpartition(".")[2]
        why = in_words(sentences[0], words.get(last, f"The {last}"))
        raise Refused(f"The list can no longer be sent as it was checked: {why}") from None


_SETTINGS = ("the limit above which an approval is needed", "how long points are held")
# What the last page shows, in the order of the parts of `Cost.seen`.
_SHOWN = (
    *("the list", "what the balance pays of it", *_SETTINGS, "the time", "your time zone", "“all or nobody”"),
    "what its recipients were sent before",
)
_DIGITS = 16  # Of each part.


class ListChanged(Refused):
    """The list, or something else that the page showed, is not what it was then."""

    def __init__(self, seen: str = "", now: str = "", settings_by: str = "") -> None:
        places = [place * _DIGITS for place in range(len(_SHOWN))]
        changed = [
            what for what, at in zip(_SHOWN, places, strict=True) if seen[at : at + _DIGITS] != now[at : at + _DIGITS]
        ]
        if not changed or _SHOWN[0] in changed:
            changed = [_SHOWN[0]]  # Of another list all is another.
        have = f"{' and '.join(changed)} {'has' if len(changed) == 1 else 'have'}"
        by = f" ({settings_by})" if settings_by and set(changed) & set(_SETTINGS) else ""
        super().__init__(f"Since you looked, {have} changed{by}: look at this page again before you issue points.")


def issue(
    connection: Connection, who: Caller, upload: UploadRow, *, seen: str, is_meant: bool
) -> list[Acceptance] | None:
    """Accept a whole list as queued batches; the drain issues them in the list's order. None: it was sent before.

    Args:
        who: read after the list's row was locked.
        upload: its row is locked; a second request waits for that, and then finds the list sent.
        seen: the `seen` of the cost that the page showed.
        is_meant: the member has said that the recipients are to get points again.

    Raises:
        ListChanged: the page would show something else now.
        Refused: the recipients were sent points before, and it is not said that this is meant.
        PointsError: nothing was accepted.
    """
    if upload.sent_at is not None:
        return None
    if upload.recipients is None or upload.points is None:
        raise ListChanged  # A question is open: the list is not checked now.
    now = cost(connection, who, upload)
    if now.seen != seen:
        raise ListChanged(seen, now.seen, latest(connection, "organization", who.organization.id).rstrip("."))
    if now.refusal is not None:
        raise now.refusal
    if not is_meant and now.before.must_be_meant:
        what = "These recipients were" if now.before.same_list else "Some of these recipients were"
        raise Refused(f"{what} sent points before. Tick the box if you want to issue points again.")
    assert who.member_id is not None, "a member sends it"
    accepted = _accept(connection, SendingMember(who.member_id, who.sandbox), upload, batches=now.payable.parts)
    batch_ids = [acceptance.batch_id for acceptance in accepted]
    uploads.mark_sent(connection, upload.id, batch_ids, now.before.kept(), by=who.member_id)
    detail = f"{counted(upload.points, 'point')} to {counted(upload.recipients, 'recipient')}"
    if len(accepted) > 1:
        detail += f", in {len(accepted)} batches"
    if upload.atomic:
        detail += ", all or nobody"
    if upload.send_at is not None:
        detail += f", for {moment_in(ZONE_OF_ALL, upload.send_at)}"
    if any(acceptance.status == AWAITING_APPROVAL for acceptance in accepted):
        detail += ", awaiting an approval"
    record(connection, actions.SENT, accepted[0].batch_id, detail)
    return accepted


def _accept(connection: Connection, member: SendingMember, upload: UploadRow, *, batches: int) -> list[Acceptance]:
    accepted = []
    for number in range(1, batches + 1):
        part = upload_parts.find(connection, upload.id, number)
        assert part is not None, "the lines of an unsent list are kept"
        request = request_of(upload, part)
        sends = [Send(member, request, f"console-{upload.token}-{number}")]
        lock_schedules(connection, sends)
        [outcome] = accept(connection, sends)
        if isinstance(outcome, InvalidRequest):
            raise Refused(late_sentence(outcome.faults["send_at"][0]))
        if isinstance(outcome, PointsError):
            raise outcome
        assert outcome is not None and not outcome.existed, "nobody else has the row of this list"  # noqa: PT018
        accepted.append(outcome)
    return accepted


class Cost(NamedTuple):
    """What a list costs now: verify's answer for the whole list, and whom the balance pays of its batches.

    `refusal` is why no button could issue or schedule anything of it; None when it can. `seen` has digests of all that
    the last page shows, so that its button does just that. `before` tells of earlier sends to the recipients. Batches
    of more than `approval_above` points await an approval; None: none does. Points of who has no account are held for
    `held_days`; None: without end.
    """

    verdict: verify.Verdict
    payable: upload_parts.Payable
    before: SentBefore
    refusal: PointsError | None
    approval_above: int | None
    held_days: int | None
    seen: str


def cost(connection: Connection, who: Caller, upload: UploadRow) -> Cost:
    """Return what a checked list costs: each batch gets the balance that the batches before it leave."""
    assert upload.recipients is not None, "it is checked"
    assert upload.points is not None, "it is checked"
    organization = who.organization
    payable = upload_parts.payable(connection, upload.id, amount=upload.amount, balance=organization.balance)
    verdict = verify.verdict_of(
        organization, required=upload.points, recipients=upload.recipients, paid=payable.recipients
    )
    fault = None
    if upload.send_at is not None:
        fault = bounds_fault(upload.send_at, now=now_of(connection, upload.scope))
    late = None if fault is None else Refused(late_sentence(fault))
    before = sent_before(connection, upload)
    whole = get_whole(connection, organization.id)
    seen = _seen(upload, payable, before, whole)
    refusal = _refusal(upload, verdict, late)
    return Cost(verdict, payable, before, refusal, whole.approval_above, whole.held_days, seen)


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


def _seen(upload: UploadRow, payable: upload_parts.Payable, before: SentBefore, whole: WholeOrganization) -> str:
    lately = before.lately
    parts: Sequence[Sequence[object]] = (
        [upload.id, upload.sandbox, *upload.details, upload.recipients, upload.points, payable.parts, payable.digest],
        [payable.recipients, payable.points],
        [whole.approval_above],
        [whole.held_days],
        [upload.send_at and timestamp(upload.send_at)],
        [current_zone()],
        [upload.atomic],
        [
            *(before.same_list or ()),
            *(lately.same, lately.same_label, lately.same_amount, lately.batch_count),
            *([batch.id, batch.recipients] for batch in lately.batches),
        ],
    )
    assert len(parts) == len(_SHOWN), "each part has its words"
    return "".join(hashlib.sha256(orjson.dumps(part)).hexdigest()[:_DIGITS] for part in parts)
