"""The two sets of pages, and what each request to them goes through before its view.

`door` is for everybody: signing in, the link, the parts of a page. `pages` is for members, each under its mode:
`/console/live/…` and `/console/sandbox/…`, so that two tabs in two modes never mix. A view of `pages` says by `needs`
which role it is for. One that changes something must say so; else nobody may.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from flask import Blueprint, Response, current_app, g, redirect, request, session, url_for
from flask_wtf.csrf import validate_csrf
from werkzeug.exceptions import Forbidden
from werkzeug.wrappers import Response as AnyResponse
from wtforms import ValidationError

from app import member_sessions
from app.api.call.record import current_record
from app.api.console.cookie import require_secret
from app.errors import FormTooOld, NotFound
from app.members import VIEWER, Member
from app.postgres.database import single_statement
from app.settings import INT64_MAX, settings

ROOT = "/console"
MODES = LIVE, SANDBOX = "live", "sandbox"

door = Blueprint("console_door", __name__, url_prefix=ROOT, template_folder="templates")
pages = Blueprint("console", __name__, url_prefix=f"{ROOT}/<any(live, sandbox):mode>", template_folder="templates")

# Nothing but the service's own parts runs in a page, and its forms go nowhere else.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

# Of a form that nobody has signed in for.
_STRANGERS_BYTES_MAX = 16_384

_View = TypeVar("_View", bound=Callable[..., Any])


def needs(role: str) -> Callable[[_View], _View]:
    """Say which role a view is for; those above it may use it too. Put it under the route."""

    def mark(view: _View) -> _View:
        view.__dict__["needs"] = role
        return view

    return mark


def current_member() -> Member:
    """Return the member who is signed in."""
    member: Member = g.member
    return member


def is_sandbox() -> bool:
    """Tell the mode of the page."""
    return bool(g.mode == SANDBOX)


def row_id(noun: str, number: int) -> int:
    """Return the id of a row, as a path or a form names it.

    Raises:
        NotFound: it is larger than any id.
    """
    if number > INT64_MAX:
        raise NotFound(noun, number)
    return number


def add_headers(response: Response) -> Response:
    """Say what may run in a page and what it may ask."""
    response.headers.update(_HEADERS)
    return response


@pages.url_value_preprocessor
def _take_mode(_endpoint: str | None, values: dict[str, Any] | None) -> None:
    g.mode = (values or {}).pop("mode", LIVE)


@pages.url_defaults
def _give_mode(_endpoint: str, values: dict[str, Any]) -> None:
    values.setdefault("mode", g.get("mode", LIVE))


@door.before_request
def _meet_stranger() -> None:
    require_secret(current_app)
    request.max_content_length = _STRANGERS_BYTES_MAX
    _refuse_forgery()


@pages.before_request
def _meet_member() -> AnyResponse | None:
    require_secret(current_app)
    found = None
    if token := session.get("token"):
        with single_statement() as connection:
            found = member_sessions.find(connection, token)
    if found is None:
        if request.method in ("GET", "HEAD"):
            return redirect(url_for("console_door.sign_in", next=request.full_path.rstrip("?")))
        return redirect(url_for("console_door.sign_in"), 303)
    g.session_id, g.member, g.organization_name = found.session_id, found.member, found.organization_name
    current_record().organization_id = g.member.organization_id
    request.max_content_length = request.max_form_memory_size = settings().body_bytes_max
    _refuse_forgery()
    _refuse_role(g.member)
    return None


def _refuse_role(member: Member) -> None:
    assert request.endpoint is not None, "a request without a route comes to no blueprint"
    view = current_app.view_functions[request.endpoint]
    role = view.__dict__.get("needs", VIEWER if request.method in ("GET", "HEAD") else None)
    if role is None or not member.may(role):
        raise Forbidden(f"Your role here is {member.role}. An admin of your organization can change it.")


def _refuse_forgery() -> None:
    """See that a form comes from a page of ours that this browser was given."""
    if request.method in ("GET", "HEAD"):
        return
    try:
        validate_csrf(request.form.get("csrf_token"))
    except ValidationError:
        raise FormTooOld from None


door.after_request(add_headers)
pages.after_request(add_headers)
