"""Slow work, one piece at a time in a process: only few requests may wait for their turn. So lists are checked.

Otherwise many such requests could hold the threads of all callers. A list is checked step by step; its page tells how
far that is, and needs no script.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import chain
from threading import BoundedSemaphore, Lock
from typing import Any

from flask import Response, make_response, redirect, render_template, stream_with_context, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as AnyResponse

from app.console.blueprints import current_member, current_scope
from app.errors import PointsError, Refused
from app.postgres.database import transaction
from app.recipient_files.checking import AmountsMissing, Checked, Progress, checking
from app.recipient_files.columns import Chosen
from app.recipient_files.list_file import ColumnUnclear
from app.recipient_files.text import HiddenRowsUnclear, SheetUnclear, to_keep
from app.settings import settings
from app.uploads import uploads
from app.uploads.addresses import hashes_in
from app.uploads.uploads import Details, UploadRow
from app.values.numbers import counted


class Busy(PointsError):
    """Too many requests wait for a piece of slow work in this process; nothing was begun."""

    status = 503
    field = "service"
    retry_after_s = 5


def refused_form(page: str, error: PointsError) -> Response:
    """Answer with the page of a form that was not taken: it says the reason beside a field."""
    answer = make_response(page, error.status if isinstance(error, Busy) else 400)
    if isinstance(error, Busy):
        answer.headers["Retry-After"] = str(error.retry_after_s)
    return answer


class Turns:
    """The turns of one kind of work in this process."""

    def __init__(self, waiting_max: int, refusal: str) -> None:
        self.waiting_max = waiting_max
        self._refusal = refusal
        self._places = BoundedSemaphore(waiting_max)
        self._one_at_a_time = Lock()

    @contextmanager
    def turn_of_many(self) -> Iterator[None]:
        """Wait for a turn of work that was begun and is done in many: it is refused no more, however many wait."""
        with self._one_at_a_time:
            yield

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn, and hold it for the block.

        Raises:
            Busy: too many requests wait already.
        """
        if not self._places.acquire(blocking=False):
            raise Busy(f"{self._refusal} Try again in a few seconds.")
        try:
            with self._one_at_a_time:
                yield
        finally:
            self._places.release()


# Hashing a password takes tens of milliseconds and 19 MiB.
password_work = Turns(8, "Too many people are signing in, so your password was not looked at.")
# Checking a long list takes seconds.
list_checks = Turns(4, "Too many lists are being checked, so yours was not looked at.")
# A search that finds little reads millions of rows, for a second or two.
searches = Turns(8, "Too many searches are running, so yours was not begun.")


# The most batches of a list. They are accepted in one transaction.
PARTS_MAX = 100

# The steps of a check, which end once everything is kept.
Steps = Generator[Progress, None, None]


def keep(content: bytes, name: str, details: Details, *, token: str, faulty: Mapping[str, str] | None = None) -> Steps:
    """Check and keep a new list of the member.

    Args:
        faulty: the fields that were filled in wrongly, which stay to be corrected. The list is kept unchecked, since a
            browser does not send a file again.
        token: of the form that makes the list. If it has made a list already, that stays, and nothing new is kept.

    Raises:
        Refused: as `_look_at`.
        Busy: too many lists are being checked.
    """
    scope, member_id = current_scope(), current_member().id
    with list_checks.turn():
        content = to_keep(content, name)
        content_or_question: Checked | str = uploads.AMOUNT
        findings: dict[str, Any] = {"faulty": faulty}
        if not faulty:
            content_or_question, findings = yield from _look_at(content, name, details)
        hashes = hashes_in(content)
    with transaction() as connection:
        upload_id = uploads.add(
            connection, scope, member_id=member_id, name=name, content=content, address_hashes=hashes, token=token
        )
        if upload_id is not None:
            uploads.judge(connection, upload_id, details, content_or_question, findings)


def keep_again(upload: UploadRow, content: bytes, details: Details, kept: Mapping[str, Any]) -> Steps:
    """Check a list again, by these details, and keep what that finds, unless it was sent meanwhile.

    Args:
        kept: what the page of the check showed before, and still shows.

    Raises:
        Refused: as `_look_at`, or the points are still missing.
        Busy: too many lists are being checked.
    """
    with list_checks.turn():
        content_or_question, findings = yield from _look_at(content, upload.name, details)
    if content_or_question == upload.question == uploads.AMOUNT:
        raise Refused("Enter the points for each recipient, or choose their column.")
    with transaction() as connection:
        if uploads.get(connection, upload.token, upload.scope, lock=True).sent_at is None:
            uploads.judge(connection, upload.id, details, content_or_question, {**kept, **findings})


def _look_at(
    content: bytes, name: str, details: Details
) -> Generator[Progress, None, tuple[Checked | str, dict[str, Any]]]:
    """Check a list; return its content or the open question, and what the page of the check shows.

    Raises:
        Refused: the list cannot be read, has no recipients, or is too long.
    """
    limits = settings()
    try:
        checked = yield from checking(
            BytesIO(content),
            name,
            sheet=details.sheet,
            hidden_rows=details.hidden_rows,
            column=details.column,
            chosen=Chosen(details.amount_column, details.reference_column, details.label_column),
            amount=details.amount,
            label=details.label,
            amount_max=limits.amount_max,
            size=limits.recipients_max,
        )
    except SheetUnclear as error:
        return uploads.SHEET, {"question": error.sentence, "sheets": list(error.choices.items())}
    except HiddenRowsUnclear as error:
        return uploads.HIDDEN_ROWS, {"question": error.sentence}
    except ColumnUnclear as error:
        if not error.choices:
            raise Refused(error.sentence) from None
        return uploads.COLUMN, {
            "question": error.sentence,
            "choices": [(place, *candidate) for place, candidate in error.choices.items()],
        }
    except AmountsMissing as error:
        return uploads.AMOUNT, {"question": error.sentence, "titles": error.titles}
    if len(checked.parts) > PARTS_MAX:
        most = PARTS_MAX * limits.recipients_max
        raise Refused(f"{name} has {counted(checked.recipients, 'recipient')}; one list may have at most {most}.")
    return checked, checked.findings


# Where the progress is written into the page.
_HERE = Markup("<!-- here -->")


def checked_page(steps: Steps, token: str) -> AnyResponse:
    """Check a list, and go on to the page of its check; while a long one is checked, the answer tells how far that is.

    Raises:
        PointsError: the check came to an end at once, with this.
    """
    check = url_for("console.check", token=token)
    first = next(steps, None)
    if first is None:
        return redirect(check, 303)
    before, after = render_template("console/checking.html", progress_here=_HERE).split(_HERE)
    answer = Response(stream_with_context(_page(chain([first], steps), check, before, after)))
    answer.headers["X-Accel-Buffering"] = "no"  # A proxy passes each step on at once.
    answer.call_on_close(steps.close)
    return answer


def _page(steps: Iterator[Progress], check: str, before: str, after: str) -> Iterator[str]:
    yield before
    try:
        for progress in steps:
            yield _step(progress=progress)
    except PointsError as error:
        yield _step(sentence=error.sentence)
    except Exception:
        yield _step()
        yield after
        raise
    else:
        yield _step(check=check)
    yield after


def _step(*, progress: Progress | None = None, sentence: str | None = None, check: str | None = None) -> str:
    """Write how far the check is, why nothing was kept, or that it is done; without any: that this is not known."""
    return render_template("console/checking_step.html", progress=progress, sentence=sentence, check=check)
