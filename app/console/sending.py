"""Lists in the console: a part of a list as a request, and issuing the whole list."""

from sqlalchemy import Connection

from app.actions import log as actions
from app.api_keys import Caller
from app.batches.accept import Acceptance, Send, SendingMember, accept, lock_schedules
from app.batches.fields import SEND
from app.batches.read import AWAITING_APPROVAL
from app.batches.request import IssueRequest, read_issue_request
from app.console.caller import record_action
from app.console.costs import cost, late_sentence
from app.console.faults import in_words
from app.errors import InvalidRequest, PointsError, Refused
from app.recipient_files.recipients import body_of
from app.settings import settings
from app.uploads import parts as upload_parts
from app.uploads import uploads
from app.uploads.uploads import UploadRow
from app.values.numbers import counted
from app.values.timestamps import timestamp
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


class ListChanged(Refused):
    """The list, or whom the balance pays of it, is not what the page has shown."""

    def __init__(self) -> None:
        super().__init__(
            "The list was changed since you looked, or the balance now pays more or less of it, or its recipients were"
            " sent points meanwhile: look at this page again before you issue points."
        )


def issue(
    connection: Connection, who: Caller, upload: UploadRow, *, seen: str, is_meant: bool
) -> list[Acceptance] | None:
    """Accept a whole list as queued batches; the drain issues them in the list's order. None: it was sent before.

    Args:
        who: read after the list's row was locked.
        upload: its row is locked; a second request waits for that, and then finds the list sent.
        seen: the `seen` of the cost that the page has shown.
        is_meant: the member has said that the recipients are to get points again.

    Raises:
        ListChanged: the page would show something else now.
        Refused: the recipients were sent to before, and it is not said that this is meant.
        PointsError: nothing was accepted.
    """
    if upload.sent_at is not None:
        return None
    if upload.recipients is None or upload.points is None:
        raise ListChanged  # A question is open: the list is not checked now.
    now = cost(connection, who, upload)
    if now.seen != seen:
        raise ListChanged
    if now.refusal is not None:
        raise now.refusal
    if not is_meant and now.before.must_be_meant:
        what = "This list was" if now.before.same_list else "Recipients of this list were"
        raise Refused(f"{what} sent to before. Tick the box if you want to issue points again.")
    accepted = _accept(connection, who, upload, batches=now.payable.parts)
    uploads.mark_sent(connection, upload.id, [one.batch_id for one in accepted])
    detail = f"{counted(upload.points, 'point')} to {counted(upload.recipients, 'recipient')}"
    if len(accepted) > 1:
        detail += f", in {len(accepted)} batches"
    if upload.atomic:
        detail += ", all or nobody"
    if upload.send_at is not None:
        detail += f", for {moment_in(ZONE_OF_ALL, upload.send_at)}"
    if any(one.status == AWAITING_APPROVAL for one in accepted):
        detail += ", awaiting an approval"
    record_action(connection, actions.SENT, accepted[0].batch_id, sandbox=who.sandbox, detail=detail)
    return accepted


def _accept(connection: Connection, who: Caller, upload: UploadRow, *, batches: int) -> list[Acceptance]:
    assert who.member_id is not None, "a member sends it"
    member, accepted = SendingMember(who.member_id, who.sandbox), []
    for number in range(1, batches + 1):
        request = request_of(upload, upload_parts.get(connection, upload.id, number))
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
