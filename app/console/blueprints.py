"""The two sets of pages, and the checks before each view.

`door` is for everybody: signing in, the link, the styles and scripts. `pages` is for members. Its paths begin with the
mode, `/console/live/…` or `/console/sandbox/…`, so that two tabs in two modes never mix. A route of `pages` names its
role. One that changes something must do so: otherwise it refuses every member.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from flask import Blueprint, Response, current_app, flash, g, redirect, request, session, url_for
from flask_wtf.csrf import validate_csrf
from werkzeug.exceptions import Forbidden, HTTPException
from werkzeug.wrappers import Response as AnyResponse
from wtforms import ValidationError

from app.batches.approval import count_to_answer
from app.console.browser import is_members_browser, kept_form, require_secret, sign_in_page
from app.console.forms import SignInForm
from app.errors import PointsError
from app.members import sessions
from app.members.members import APPROVER, VIEWER, Member
from app.metrics.requests import current_record
from app.postgres.database import single_statement
from app.scope import Scope
from app.settings import settings
from app.values.zones import ZONE_OF_ALL

ROOT = "/console"
MODES = LIVE, SANDBOX = "live", "sandbox"

_View = TypeVar("_View", bound=Callable[..., Any])
Page = AnyResponse | tuple[str, int] | str  # What a view returns.


class Pages(Blueprint):
    """Pages for members. A route names the lowest role that may use its view: `@pages.post("/keys", role=ADMIN)`.

    A route that `asks` has a page that asks for its form, and shows nothing that the form has done; one that `deletes`
    has no page above it but that of what it deletes.
    """

    def route(
        self, rule: str, *, role: str | None = None, asks: bool = False, deletes: bool = False, **options: Any
    ) -> Callable[[_View], _View]:
        register = super().route(rule, **options)

        def declare(view: _View) -> _View:
            said = {"role": role or said_of(view, "role"), "asks": asks, "deletes": deletes}
            view.__dict__.update(said)  # One view may have several routes.
            return register(view)

        return declare

    def form(self, rule: str, **options: Any) -> Callable[[_View], _View]:
        """Declare a view that shows a form and takes it."""
        return self.route(rule, methods=["GET", "POST"], **options)


def said_of(view: Any, word: str) -> Any:
    """Return what the route of a view says; None if it is no page of members."""
    return getattr(view, word, None)


door = Blueprint("console_door", __name__, url_prefix=ROOT, template_folder="templates")
pages = Pages("console", __name__, url_prefix=f"{ROOT}/<any(live, sandbox):mode>", template_folder="templates")

# A page may load only the service's own files, and send its forms only to the service.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

# The limit of forms that are sent before signing in, except from a browser with which a member has signed in.
_STRANGERS_BYTES_MAX = 16_384


class FormTooOld(PointsError):
    """A form does not come from a page that the console gave this browser, or the page is too old."""

    status = 400
    says = "This form is too old, or is not from the console. Nothing was changed. Go back and reload."


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


def current_scope() -> Scope:
    """Return the organization of the signed-in member, and the mode of the page."""
    return Scope(current_member().organization_id, is_sandbox())


def mode_of(path: str) -> str:
    """Return the mode that an address names, also if no page has that address."""
    return SANDBOX if f"{path}/".startswith(f"{ROOT}/{SANDBOX}/") else LIVE


def page_that_tells() -> str:
    """Return the address of the page that shows what the form that was sent has done: the nearest above its address.

    A page that only asks for the form does not, nor does a page of what the form deletes.
    """
    routes, path, views = current_app.url_map.bind(""), request.path, current_app.view_functions
    if said_of(views.get(request.endpoint or ""), "deletes"):
        path = path.rsplit("/", 2)[0]
    while path:
        try:
            endpoint, _ = routes.match(path, method="GET")
        except HTTPException:
            endpoint = ""
        if endpoint and not said_of(views[endpoint], "asks"):
            return path
        path = path.rpartition("/")[0]
    return ROOT


def to_page(endpoint: str, sentence: str = "", mood: str = "message", **values: Any) -> AnyResponse:
    """Lead to a page of `pages`, which says the sentence first; `mood` may be `bad`."""
    if sentence:
        flash(sentence, mood)
    return redirect(url_for(f"console.{endpoint}", **values), 303)


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
    bytes_max = _STRANGERS_BYTES_MAX
    if request.method not in ("GET", "HEAD") and is_members_browser():  # A form may go along with the sign-in.
        bytes_max += settings().body_bytes_max
    request.max_content_length = request.max_form_memory_size = bytes_max
    _refuse_forgery()
    g.view_runs = True


# What a member may open who has to set up a second factor first.
_WITHOUT_SECOND_FACTOR = ("console.second_factor", "console.sign_out")


@pages.before_request
def _meet_member() -> Page | None:
    require_secret(current_app)
    current = None
    if token := session.get("token"):
        with single_statement() as connection:
            current = sessions.find(connection, token)
            if current is not None and current.member.may(APPROVER):
                scope = Scope(current.member.organization_id, is_sandbox())
                g.to_answer = count_to_answer(connection, scope, member_id=current.member.id)
    if current is None:
        return _ask_to_sign_in()
    g.session_id, g.member, g.organization_name = current.session_id, current.member, current.organization_name
    g.time_zone, g.has_others, g.sandbox_ahead = current.time_zone, current.has_others, current.sandbox_ahead
    if session.get("member_id") != g.member.id:  # Who signs in next in this browser goes on as the same member.
        session["member_id"] = g.member.id
    current_record().organization_id = g.member.organization_id
    request.max_content_length = request.max_form_memory_size = settings().body_bytes_max
    _refuse_forgery()
    _refuse_role(g.member)
    g.must_enrol = current.must_enrol
    if current.must_enrol and request.endpoint not in _WITHOUT_SECOND_FACTOR:
        return to_page("second_factor")
    g.view_runs = True
    return None


def _ask_to_sign_in() -> Page:
    """Lead to the sign-in and back. What was typed into a form of a session that is over is kept."""
    if request.method in ("GET", "HEAD"):
        over = "look" if "token" in session else None
        return redirect(url_for("console_door.sign_in", next=request.full_path.rstrip("?"), over=over))
    page = page_that_tells()
    if is_members_browser():
        request.max_content_length = request.max_form_memory_size = settings().body_bytes_max
        try:
            _refuse_forgery()
        except FormTooOld:
            pass
        else:
            return sign_in_page(SignInForm(formdata=None), kept_form(), page=page, over="form"), 403
    return redirect(url_for("console_door.sign_in", next=page, over="form"), 303)


def _refuse_role(member: Member) -> None:
    assert request.endpoint is not None, "a blueprint gets only requests with a route"
    view, is_read = current_app.view_functions[request.endpoint], request.method in ("GET", "HEAD")
    role = said_of(view, "role") or (VIEWER if is_read else None)
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
