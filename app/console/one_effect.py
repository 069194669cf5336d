"""One form, one effect: each form carries an id, and a form that is sent again changes nothing."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from flask import request
from sqlalchemy import Connection

from app.console.blueprints import FormTooOld, current_member
from app.console.caller import signed_in
from app.errors import PointsError
from app.members import used_forms
from app.postgres.database import transaction

_FORM_ID = re.compile(r"[A-Za-z0-9_-]{24}")


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
        shown_once: said to who sends the form again, about what its first answer has shown and no other will show.

    Raises:
        FormUsed: the form has had its effect.
    """
    with transaction(by=signed_in()) as connection:
        use(connection, shown_once=shown_once)
        yield connection


def use(connection: Connection, *, shown_once: str = "") -> None:
    """Use up the id of the form that was sent, as `change`, in a transaction that is open."""
    if not used_forms.use(connection, form_id(), member_id=current_member().id):
        raise FormUsed(f"{FormUsed.says} {shown_once}".strip())
