"""Signing in, by e-mail address and password, and out; what was typed into a form of an old session goes along."""

import re

from flask import flash, g, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from app.console import kept_forms
from app.console.blueprints import ROOT, current_member, door, needs, pages
from app.console.cookie import sign_in_with
from app.console.error_pages import refused_form
from app.console.forms import SignInForm, say_beside
from app.console.kept_forms import Kept
from app.console.place import place
from app.console.slow_work import Busy, password_work
from app.errors import InvalidAddress
from app.members import sessions
from app.members.members import VIEWER
from app.postgres.database import transaction
from app.values.addresses import parse
from app.values.passwords import is_right

# One sentence for all cases, so that it does not reveal who is a member or whether a guess was near.
WRONG = (
    "The e-mail address or the password is wrong, or the account is locked: ten wrong passwords lock it for 15 minutes."
)

_PAGE = re.compile(rf"{ROOT}/[a-z]+(?:/[A-Za-z0-9_?&=%.,:+-]+)*\Z")


@door.route("/sign-in", methods=["GET", "POST"])
def sign_in() -> Response | tuple[str, int] | str:
    form, kept = SignInForm(), kept_forms.sent_along()
    if not form.validate_on_submit():
        return _page(form, kept)
    try:
        token = _token_for(form.email.data, form.password.data)
    except Busy as error:
        say_beside(form.password, error.sentence)
        return refused_form(_page(form, kept), error)
    if token is None:
        say_beside(form.password, WRONG)
        return _page(form, kept), 403
    sign_in_with(token)
    wanted = request.args.get("next", "")
    page = wanted if _PAGE.match(wanted) else url_for("console.overview", mode="live")
    if kept is not None and kept.fields:
        return render_template("console/go_on.html", kept=kept, page=page)
    if kept is not None:
        flash("You are signed in again. Nothing was issued or changed: look at this page and send the form again.")
    return redirect(page, 303)


def _page(form: SignInForm, kept: Kept | None) -> str:
    return kept_forms.sign_in_page(form, kept, page=request.args.get("next"), over=request.args.get("over"))


def _token_for(email: str, password: str) -> str | None:
    """Return the token of a new session, or None. An unknown address takes as much work as a known one."""
    try:
        email_key = parse(email).key
    except InvalidAddress:
        email_key = ""
    with transaction() as connection:
        found = sessions.count_try(connection, email_key)
    with password_work.turn():
        right = is_right(password, None if found is None else found.password_hash)
    with transaction() as connection:
        if found is None or not right:
            sessions.note_wrong_password(connection, found, place())
            return None
        return sessions.begin(connection, found.member_id, found.password_hash, place())


@pages.post("/sign-out")
@needs(VIEWER)
def sign_out() -> Response:
    """End the session in the database too, not only in the browser."""
    with transaction() as connection:
        sessions.end(connection, g.session_id, member_id=current_member().id)
    session.pop("token")
    flash("You are signed out.")
    return redirect(url_for("console_door.sign_in", next=url_for("console.overview")), 303)
