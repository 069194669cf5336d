"""The console's one cookie: signed by a secret that all processes share, and sent to the console alone.

It holds the token of the session, what forms are protected with, and what the next page shall say. What the token is
good for stands in PostgreSQL.
"""

from typing import Any

from flask import Flask, Request, request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from sqlalchemy.exc import SQLAlchemyError

from app import service_secrets
from app.errors import OutOfReach
from app.postgres.database import transaction


class ConsoleCookie(SecureCookieSessionInterface):
    """Flask's cookie, for the console alone: a call of the API has none, and pays nothing for it."""

    SETTINGS: dict[str, Any] = {  # noqa: RUF012  # Flask's own names and values, never changed.
        "SESSION_COOKIE_NAME": "points_console",
        "SESSION_COOKIE_PATH": "/console",
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        # A form is good as long as a session: the forms' own limit would be an hour.
        "WTF_CSRF_TIME_LIMIT": 12 * 3_600,
        "WTF_CSRF_CHECK_DEFAULT": False,
    }

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        if not request.path.startswith("/console"):
            return None
        if app.secret_key is None:
            try:
                with transaction() as connection:
                    app.secret_key = service_secrets.find_or_make(connection, "console cookie")
            except SQLAlchemyError:
                return None  # `require_secret` answers.
        return super().open_session(app, request)

    def get_cookie_secure(self, app: Flask) -> bool:
        return is_https()


def is_https() -> bool:
    """Tell whether the browser came by https: a proxy that ends TLS says so.

    Whoever makes the header up has only a cookie that is sent by https alone, so it is believed from anybody.
    """
    return request.is_secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def require_secret(app: Flask) -> None:
    """See that the cookie can be read.

    Raises:
        OutOfReach: PostgreSQL, which has the secret, is away.
    """
    if app.secret_key is None:
        raise OutOfReach
