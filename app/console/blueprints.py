"""The two sets of pages, and the checks before each view.

`door` is for everybody: signing in, the link, the styles and scripts. `pages` is for members. Its paths begin with the
mode, `/console/live/…` or `/console/sandbox/…`, so that two tabs in two modes never mix. A view of `pages` names its
role with `needs`. A view that changes something must do so: otherwise it refuses every member.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from flask import Blueprint, Response, current_app, g, redirect, request, session, url_for
from flask_wtf.csrf import validate_csrf
from werkzeug.exceptions import Forbidden
from werkzeug.wrappers import Response as AnyResponse
from wtforms import ValidationError

from app.console.cookie import require_secret
from app.errors import PointsError
from app.members import sessions
from app.members.members import VIEWER, Member
from app.metrics.record import current_record
from app.postgres.database import single_statement
from app.settings import settings
from app.values.zones import ZONE_OF_ALL

ROOT = "/console"
MODES = LIVE, SANDBOX = "live", "sandbox"

door = Blueprint("console_door", __name__, url_prefix=ROOT, template_folder="templates")
pages = Blueprint("console", __name__, url_prefix=f"{ROOT}/<any(live, sandbox):mode>", template_folder="templates")

# A page may load only the service's own files, and send its forms only to the service.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

# The limit of forms that are sent before signing in.
_STRANGERS_BYTES_MAX = 16_384

_View = TypeVar("_View", bound=Callable[..., Any])


class FormTooOld(PointsError):
    """A form does not come from a page that the console gave this browser, or the page is too old."""

    status = 400
    code = "form_too_old"
    says = "This form is too old, or is not from the console. Nothing was changed. Go back and reload."


def needs(role: str) -> Callable[[_View], _View]:
    """Set the lowest role that may use a view. Put the decorator below the route."""

    def mark(view: _View) -> _View:
        view.__dict__["needs"] = role
        return view

    return mark


def current_member() -> Member:
    """Return the signed-in member."""
    member: Member = g.member
    return member


def current_zone() -> str:
    """Return the time zone of the signed-in member; UTC for everybody else."""
    zone: str = g.get("time_zone", ZONE_OF_ALL)
    return zone


def is_sandbox() -> bool:
    """Tell whether the page is in the sandbox."""
    return bool(g.mode == SANDBOX)


def add_headers(response: Response) -> Response:
    """Add the headers that protect a page."""
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
            found = sessions.find(connection, token)
    if found is None:
        if request.method in ("GET", "HEAD"):
            return redirect(url_for("console_door.sign_in", next=request.full_path.rstrip("?")))
        return redirect(url_for("console_door.sign_in"), 303)
    g.session_id, g.member, g.organization_name = found.session_id, found.member, found.organization_name
    g.time_zone = found.time_zone
    current_record().organization_id = g.member.organization_id
    request.max_content_length = request.max_form_memory_size = settings().body_bytes_max
    _refuse_forgery()
    _refuse_role(g.member)
    return None


def _refuse_role(member: Member) -> None:
    assert request.endpoint is not None, "a blueprint gets only requests with a route"
    view = current_app.view_functions[request.endpoint]
    role = view.__dict__.get("needs", VIEWER if request.method in ("GET", "HEAD") else None)
    if role is None or not member.may(role):
        raise Forbidden(
            f"Your role {member.role} does not allow this. An admin of your organization can change your role."
        )


def _refuse_forgery() -> None:
    """Check that a form comes from a page that the console gave this browser."""
    if request.method in ("GET", "HEAD"):
        return
    try:
        validate_csrf(request.form.get("csrf_token"))
    except ValidationError:
        raise FormTooOld from None


door.after_request(add_headers)
pages.after_request(add_headers)
