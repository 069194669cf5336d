"""The signed-in member as the caller of functions of the API and as the author of actions. One form, one effect."""

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from flask import request
from sqlalchemy import Connection

from app import api_keys, organizations
from app.actions import log as actions
from app.api_keys import Caller
from app.batches.batch import Batch
from app.console.blueprints import FormTooOld, current_member, current_scope, is_sandbox
from app.errors import PointsError
from app.members import members, sessions
from app.postgres.database import transaction
from app.reversals.reversal import Reversal
from app.scope import Author, Scope
from app.statement.makeup import Sender
from app.uploads.listed import Awaiting

_News = TypeVar("_News")


def calling_member(connection: Connection) -> Caller:
    """Return the signed-in member, with the mode of the page and the organization as it is now."""
    member, sandbox = current_member(), is_sandbox()
    organization = organizations.get(connection, Scope(member.organization_id, sandbox=sandbox))
    return Caller(api_key_id=None, sandbox=sandbox, organization=organization, member_id=member.id)


def record(connection: Connection, action: str, subject_id: int, detail: str | None = None) -> None:
    """Record an action of the signed-in member in the mode of the page, to be committed with its change."""
    of = current_scope()._asdict()
    actions.record(connection, action, **of, subject_id=subject_id, detail=detail, by=signed_in())


def signed_in() -> Author:
    """Return the signed-in member as the author of what is done."""
    return Author(member_id=current_member().id)


def act(
    action: str, subject_id: int, rule: Callable[[Connection, Caller], _News], *, detail: str | None = None
) -> _News:
    """Do as the member what a form asks for, and record it if what `rule` returns says that it is news."""
    with transaction() as connection:
        who = calling_member(connection)
        if news := rule(connection, who):
            record(connection, action, subject_id, detail)
    return news


class Authors(NamedTuple):
    """The names of members and of keys, by their ids. A key may have none."""

    members: dict[int, str]
    keys: dict[int, str | None]


def authors_of(connection: Connection, rows: Sequence[Batch | Reversal | Sender | Awaiting]) -> Authors:
    """Return the names of those who have made these batches and reversals, or have sent, and of keys that approved."""
    answers = [row.approval for row in rows if isinstance(row, Batch) and row.approval is not None]
    key_ids = {row.api_key_id for row in rows} | {answer["api_key_id"] for answer in answers}
    return Authors(
        members.names_of(connection, {row.member_id for row in rows if row.member_id is not None}),
        api_keys.names_of(connection, {key_id for key_id in key_ids if key_id is not None}),
    )


_FORM_ID = re.compile(r"[A-Za-z0-9_-]{24}")


class ChangedMeanwhile(PointsError):
    """What a form is about is no longer what its page showed. `by_whom` is a sentence of Activity, if that is known."""

    status = 409

    def __init__(self, by_whom: str = "", *, why: str = "It was changed since you looked") -> None:
        again = "Look at it as it is now, and send the form again if you still want that."
        super().__init__(f"{why}, so nothing was done. {by_whom} {again}".replace("  ", " "))


def require_seen(now: str, by_whom: Callable[[], str]) -> None:
    """Check that the page of the form that was sent showed (`seen`) what is now.

    Raises:
        ChangedMeanwhile: it did not.
    """
    if not (seen := request.form.get("seen")):
        raise ChangedMeanwhile(why="You have not seen how it is now")
    if seen != now:
        raise ChangedMeanwhile(by_whom())


class FormUsed(PointsError):
    """A form was sent again: a reload, a second click, or after an answer that was lost."""

    status = 409
    says = "This form was sent before, and was done then. Nothing was done again."


def new_form_id() -> str:
    """Return an id for a form on a page."""
    return secrets.token_urlsafe(18)


def form_id() -> str:
    """Return the id of the form that was sent.

    Raises:
        FormTooOld: it has no id, so it is not from a page of the console.
    """
    text = request.form.get("form_id", "")
    if not _FORM_ID.fullmatch(text):
        raise FormTooOld
    return text


@contextmanager
def change(*, shown_once: str = "") -> Iterator[Connection]:
    """Open a transaction for the effect of the form that was sent, and use up its id.

    Args:
        shown_once: said to who sends the form again, about what its first answer showed and no other will show.

    Raises:
        FormUsed: the form has had its effect.
    """
    with transaction(by=signed_in()) as connection:
        if not sessions.use_form(connection, form_id(), member_id=current_member().id):
            raise FormUsed(f"{FormUsed.says} {shown_once}".strip())
        yield connection
