"""Checking a list in the console, step by step, so that a page can tell how far that is; and keeping what was found."""

from collections.abc import Generator, Mapping
from io import BytesIO
from typing import Any

from app.console.blueprints import current_member, is_sandbox
from app.console.slow_work import list_checks
from app.errors import Refused
from app.postgres.database import transaction
from app.recipient_files import ColumnUnclear, SheetUnclear
from app.recipient_files.checking import AmountsMissing, Checked, Progress, checking
from app.settings import settings
from app.uploads import uploads
from app.uploads.uploads import Asked, UploadRow
from app.values.numbers import counted

# The most batches of one list. They are accepted in one transaction.
PARTS_MAX = 100

# The steps of a check, which end once everything is kept.
Steps = Generator[Progress, None, None]


def keep(content: bytes, name: str, asked: Asked, *, token: str) -> Steps:
    """Check and keep a new list of the member.

    Args:
        token: of the form that makes the list. If it has made one already, that one stays, and nothing new is kept.

    Raises:
        Refused: as `_look_at`.
        Busy: too many lists are being checked.
    """
    of = {"organization_id": current_member().organization_id, "member_id": current_member().id}
    sandbox = is_sandbox()
    with list_checks.turn():
        found, shown = yield from _look_at(content, name, asked)
    with transaction() as connection:
        upload_id = uploads.add(connection, **of, sandbox=sandbox, name=name, content=content, token=token)
        if upload_id is not None:
            uploads.judge(connection, upload_id, asked, found, shown)


def keep_again(upload: UploadRow, content: bytes, asked: Asked, kept: Mapping[str, Any]) -> Steps:
    """Check a list again, as it is asked for now, and keep what is found, unless it was sent meanwhile.

    Args:
        kept: what the page of the check showed before, and still shows.

    Raises:
        Refused: as `_look_at`, or the points are still missing.
        Busy: too many lists are being checked.
    """
    with list_checks.turn():
        found, shown = yield from _look_at(content, upload.name, asked)
    if found == upload.question == uploads.AMOUNT:
        raise Refused("Enter the points for each recipient.")
    scope: dict[str, Any] = {"organization_id": upload.organization_id, "sandbox": upload.sandbox}
    with transaction() as connection:
        if uploads.get(connection, upload.token, **scope, lock=True).sent_at is None:
            uploads.judge(connection, upload.id, asked, found, {**kept, **shown})


def _look_at(
    content: bytes, name: str, asked: Asked
) -> Generator[Progress, None, tuple[Checked | str, dict[str, Any]]]:
    """Check a list; return its content or the open question, and what the page of the check shows.

    Raises:
        Refused: the list cannot be read, has no recipients, or is too long.
    """
    limits = settings()
    try:
        found = yield from checking(
            BytesIO(content),
            name,
            sheet=asked.sheet,
            column=asked.column,
            amount=asked.amount,
            label=asked.label,
            amount_max=limits.amount_max,
            size=limits.recipients_max,
        )
    except SheetUnclear as error:
        return uploads.SHEET, {"question": error.sentence, "sheets": list(error.choices.items())}
    except ColumnUnclear as error:
        if not error.choices:
            raise Refused(error.sentence) from None
        return uploads.COLUMN, {
            "question": error.sentence,
            "choices": [(place, *candidate) for place, candidate in error.choices.items()],
        }
    except AmountsMissing as error:
        return uploads.AMOUNT, {"question": error.sentence}
    if len(found.parts) > PARTS_MAX:
        most = PARTS_MAX * limits.recipients_max
        raise Refused(f"{name} has {counted(found.recipients, 'recipient')}; one list may have at most {most}.")
    return found, {
        "sheet": found.sheet,
        "heading": found.heading,
        "columns": found.columns,
        "unused": found.unused,
        "first": found.first,
        "last": found.last,
        "campaign": found.campaign,
    }
