"""The console's one cookie: signed with a secret that all processes share, and sent to the console only.

It holds the session's token, the forms' protection against forgery, and messages for the next page. PostgreSQL has the
session of the token.
"""

from typing import Any

from flask import Flask, Request, g, request, session
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from sqlalchemy.exc import SQLAlchemyError

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
