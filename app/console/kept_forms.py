"""What was typed into a form whose session had ended: it goes along with the sign-in, and is offered again after it."""

from collections.abc import Iterable
from typing import NamedTuple

from flask import current_app, render_template, request
from werkzeug.exceptions import HTTPException

from app.console.forms import SignInForm

_PREFIX = "kept-"
# Of no use in another session, or shown by the page itself. Without its `seen` a confirmation is looked at again, and
# so is the box (`again`) that says that a list is meant once more.
_NEVER = {"csrf_token", "form_id", "seen", "again"}
# A form with this is not kept: passwords are typed again.
_NOT_FOR_KEEPING = {"password"}

# What the forms call the fields whose names say it otherwise.
_LABELS = {
    "amount": "Points",
    "atomic": "All or nobody",
    "clock": "Time",
    "description": "Name",
    "email": "E-mail address",
    "from_sequence": "Send again from event",
    "mode": "Kind",
    "pasted": "Addresses",
    "types": "Types of events",
    "url": "URL",
    "zone": "Time zone",
}


class Kept(NamedTuple):
    """A form that was not taken: where it is sent, and what was typed. A chosen file cannot be kept."""

    path: str
    fields: list[tuple[str, str]]
    had_file: bool

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Return what was typed for a person to look at."""
        return [(_LABELS.get(name, name.replace("_", " ").capitalize()), text) for name, text in self.fields]

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """Return the fields that carry it through the sign-in."""
        own = [("form", self.path), *([("had_file", "yes")] if self.had_file else [])]
        return own + [(_PREFIX + name, text) for name, text in self.fields]


def of_request() -> Kept:
    """Return the form that was sent now."""
    fields = [] if _NOT_FOR_KEEPING & set(request.form) else _typed("", request.form.items(multi=True))
    return Kept(request.path, fields, any(file.filename for file in request.files.values()))


def sent_along() -> Kept | None:
    """Return the form that goes along with the sign-in; None if there is none."""
    path = request.form.get("form", "")
    if not _is_form(path):
        return None
    return Kept(path, _typed(_PREFIX, request.form.items(multi=True)), bool(request.form.get("had_file")))


def sign_in_page(form: SignInForm, kept: Kept | None, *, page: str | None, over: str | None) -> str:
    """Return the page that asks to sign in.

    Args:
        page: where to go afterwards.
        over: what the end of a session has interrupted: a `form`, a `look`, or None.
    """
    return render_template("console/sign_in.html", form=form, kept=kept, page=page, over="form" if kept else over)


def _typed(prefix: str, fields: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    named = [(name.removeprefix(prefix), text) for name, text in fields if name.startswith(prefix)]
    return [(name, text) for name, text in named if name not in _NEVER and text.strip()]


def _is_form(path: str) -> bool:
    """Tell whether members send a form to this address."""
    try:
        endpoint, _ = current_app.url_map.bind("").match(path, method="POST")
    except HTTPException:
        return False
    return str(endpoint).startswith("console.")
