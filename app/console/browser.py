"""What a member's browser keeps: the console's only cookie, and through a sign-in the form of a session that has ended.

The cookie is signed with a secret that all processes share. It holds the session's token, the forms' protection against
forgery, and messages for the next page. PostgreSQL has the session of the token.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from flask import Flask, Request, current_app, g, render_template, request, session
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from app.console.forms import SignInForm
from app.errors import OutOfReach
from app.members import sessions
from app.postgres.database import transaction
from app.values import headers


class ConsoleCookie(SecureCookieSessionInterface):
    """Flask's cookie, for the console only: calls of the API do not read or set it."""

    SETTINGS: dict[str, Any] = {  # noqa: RUF012  # Flask's own names and values, never changed.
        "SESSION_COOKIE_NAME": "points_console",
        "SESSION_COOKIE_PATH": "/console",
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        # A form stays valid for longer than a session, so that what was typed is kept when that ends.
        "WTF_CSRF_TIME_LIMIT": 24 * 3_600,
        "WTF_CSRF_CHECK_DEFAULT": False,
    }

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        if not request.path.startswith("/console"):
            return None
        if app.secret_key is None:
            try:
                with transaction() as connection:
                    app.secret_key = sessions.secret_of_all(connection, "console cookie")
            except SQLAlchemyError:
                return None  # `require_secret` answers then.
        return super().open_session(app, request)

    def get_cookie_secure(self, app: Flask) -> bool:
        return is_https()


def sign_in_with(token: str) -> None:
    """Begin the browser's session. Values from before it are not kept."""
    session.clear()
    g.pop("csrf_token", None)  # Of the session that is over.
    session.update(token=token, is_members=True)


def is_members_browser() -> bool:
    """Tell whether a member has signed in with this browser since it was opened, signed out meanwhile or not."""
    return bool(session.get("is_members"))


def is_https() -> bool:
    """Tell whether the browser uses https."""
    return headers.is_https(request.environ)


def require_secret(app: Flask) -> None:
    """Check that the cookie's secret is known.

    Raises:
        OutOfReach: PostgreSQL, which stores the secret, is away.
    """
    if app.secret_key is None:
        raise OutOfReach


_PREFIX = "kept-"
# Of no use in another session, or on the page anyway. Without its `seen` a confirmation is looked at again, and
# so is the box (`again`) that says that a list is meant once more.
_NEVER = {"csrf_token", "form_id", "seen", "again"}
# A form with one of these is not kept: passwords and codes are typed again.
_NOT_FOR_KEEPING = {"password", "current", "code"}

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
    def readable(self) -> list[tuple[str, str]]:
        """Return what was typed for a person to look at."""
        return [(_LABELS.get(name, name.replace("_", " ").capitalize()), text) for name, text in self.fields]

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """Return the fields that carry it through the sign-in."""
        own = [("form", self.path), *([("had_file", "yes")] if self.had_file else [])]
        return own + [(_PREFIX + name, text) for name, text in self.fields]


def kept_form() -> Kept:
    """Return the form that was sent now, to be kept."""
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
