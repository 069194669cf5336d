"""Signing in, by e-mail address and password."""

import re

from flask import redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from app.console.blueprints import ROOT, door
from app.console.forms import SignInForm, say_beside
from app.console.slow_work import password_work
from app.errors import InvalidAddress
from app.members import sessions
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
    form = SignInForm()
    if not form.validate_on_submit():
        return render_template("console/sign_in.html", form=form)
    token = _token_for(form.email.data, form.password.data)
    if token is None:
        say_beside(form.password, WRONG)
        return render_template("console/sign_in.html", form=form), 403
    session.clear()  # Values from before signing in are not kept.
    session["token"] = token
    wanted = request.args.get("next", "")
    return redirect(wanted if _PAGE.match(wanted) else url_for("console.overview", mode="live"), 303)


def _token_for(email: str, password: str) -> str | None:
    """Return the token of a new session, or None. An unknown address takes as much work as a known one."""
    try:
        email_key = parse(email).key
    except InvalidAddress:
        email_key = ""
    with transaction() as connection:
        found = sessions.count_try(connection, email_key)
    with password_work.turn():
        right = is_right(password, None if found is None else found[1])
    if found is None or not right:
        return None
    with transaction() as connection:
        return sessions.begin(connection, *found)
