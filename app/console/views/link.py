"""A member's link: the member chooses a password and is signed in. Opening the link does not use it up."""

from flask import redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.console.blueprints import door
from app.console.cookie import sign_in_with
from app.console.forms import ChoosePasswordForm, say_beside
from app.console.place import place
from app.console.slow_work import password_work
from app.errors import Refused
from app.members import links, sessions
from app.members.members import Member
from app.postgres.database import transaction
from app.values import passwords


@door.route("/link/<token>", methods=["GET", "POST"])
def link(token: str) -> Response | tuple[str, int] | str:
    with transaction() as connection:
        member = links.find_by_link(connection, token)
    if member is None:
        return render_template("console/link_over.html"), 404
    form = ChoosePasswordForm()
    password = chosen_password(form, member)
    if password is None:
        return render_template("console/link.html", form=form, of=member)
    with password_work.turn():
        password_hash = passwords.hash_password(password)
    with transaction() as connection:
        member = links.find_by_link(connection, token)  # Another request may have used it up.
        if member is None:
            return render_template("console/link_over.html"), 404
        links.choose_password(connection, member, password_hash)
        session_token = sessions.begin(connection, member.id, password_hash, place())
    assert session_token is not None, "the password was chosen in the same transaction"
    sign_in_with(session_token)
    return redirect(url_for("console.overview", mode="live"), 303)


def chosen_password(form: ChoosePasswordForm, member: Member) -> str | None:
    """Return the password that a member has chosen; None if none was, with the faults beside their fields."""
    if not form.validate_on_submit():
        return None
    try:
        password = passwords.checked(form.password.data, about=(member.email, member.first_name, member.last_name))
    except Refused as error:
        say_beside(form.password, error.sentence)
        return None
    if form.again.data != password:
        say_beside(form.again, "This is not the same password.")
        return None
    return password
