"""*Your account*: the password, the time zone and the sessions of the signed-in member."""

from flask import g, render_template, session

from app.console.blueprints import Page, current_member, current_zone, pages, to_page
from app.console.caller import change
from app.console.forms import ChangePasswordForm, ZoneForm, say_beside
from app.console.slow_work import password_work
from app.console.views.sign_in import chosen_password, place, right_attempt
from app.members import links, members, sessions
from app.members.members import VIEWER
from app.postgres.database import transaction
from app.values import passwords
from app.values.addresses import parse


@pages.get("/account")
def account() -> str:
    return _page(ChangePasswordForm(formdata=None))


@pages.post("/account/password", role=VIEWER)
def change_password() -> Page:
    form = ChangePasswordForm()
    password = chosen_password(form, current_member())
    if password is None:
        return _page(form), 400
    token = _changed(form.current.data, password)
    if token is None:
        say_beside(form.current, "This is not your password, or the account is locked: ten wrong passwords lock it.")
        return _page(form), 400
    session["token"] = token
    return to_page("account", "The password is changed, and every other session has ended.")


@pages.post("/account/zone", role=VIEWER)
def choose_zone() -> Page:
    """Keep the zone in which the member reads and writes times."""
    form = ZoneForm()
    if not form.validate():
        return _page(ChangePasswordForm(formdata=None), form), 400
    with transaction() as connection:
        members.choose_zone(connection, members.lock(connection, current_member().id), form.zone.data)
    return to_page("account", f"Times are those of {form.zone.data} from now on.")


@pages.post("/account/sessions/<int:session_id>/end", role=VIEWER)
def end_session(session_id: int) -> Page:
    with transaction() as connection:
        sessions.end(connection, session_id, member_id=current_member().id)
    return to_page("account", "The session has ended.")


def _changed(current: str, password: str) -> str | None:
    """Change the password and return the token of a new session; None if the current password is wrong."""
    if right_attempt(parse(current_member().email).key, current) is None:
        return None
    with password_work.turn():
        password_hash = passwords.hash_password(password)
    with change() as connection:
        member = members.lock(connection, current_member().id)
        links.choose_password(connection, member, password_hash)
        return sessions.begin(connection, member.id, password_hash, place())


def _page(form: ChangePasswordForm, zone_form: ZoneForm | None = None) -> str:
    with transaction() as connection:
        found = sessions.find_all(connection, current_member().id)
    zone_form = zone_form or ZoneForm(formdata=None, zone=current_zone())
    return render_template("console/account.html", form=form, zone_form=zone_form, sessions=found, own=g.session_id)
