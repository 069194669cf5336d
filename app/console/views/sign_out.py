"""Signing out: the session ends in the database too, not only in the browser."""

from flask import flash, g, redirect, session, url_for
from werkzeug.wrappers import Response

from app.console.blueprints import current_member, needs, pages
from app.members import sessions
from app.members.members import VIEWER
from app.postgres.database import transaction


@pages.post("/sign-out")
@needs(VIEWER)
def sign_out() -> Response:
    with transaction() as connection:
        sessions.end(connection, g.session_id, member_id=current_member().id)
    session.pop("token")
    flash("You are signed out.")
    return redirect(url_for("console_door.sign_in", next=url_for("console.overview")), 303)
