"""*Members*: add and remove them, make links, change roles, end sessions. *Your account*: what each changes alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flask import g, render_template, request, session
from sqlalchemy import Connection

from app import leaving
from app.actions import log as actions
from app.console.blueprints import LIVE, Page, current_member, current_zone, pages, to_page
from app.console.browser import is_https, sign_in_with
from app.console.caller import ChangedMeanwhile, change, require_seen
from app.console.forms import ChangePasswordForm, MailForm, MemberForm, RoleForm, ZoneForm, say_beside
from app.console.views.activity import latest
from app.console.views.sign_in import NOT_YOURS, chosen_password, hashed, is_own_password, place
from app.errors import BatchConflict, Refused
from app.members import links, mails, second_factor, sessions
from app.members import members as rows
from app.members.members import ADMIN, VIEWER, Member
from app.postgres.database import single_statement, snapshot, transaction
from app.settings import settings

_LINK_LOST = "The link was shown then. If it was not copied, make another on the member's page."


@pages.form("/members", role=ADMIN)
def members() -> Page:
    """Show the members, and add another."""
    form, who = MemberForm(), current_member()
    if not form.validate_on_submit():
        return _list_page(form), 400 if form.is_submitted() else 200
    names = form.email.data, form.first_name.data, form.last_name.data or ""
    try:
        with change(shown_once=_LINK_LOST) as connection:
            member_id, token = links.add(connection, who.organization_id, *names, role=form.role.data, by=who.id)
            member = rows.lock(connection, member_id)
    except Refused as error:  # The form has checked the names, so this is about the address.
        say_beside(form.email, error.sentence)
        return _list_page(form), 400
    return _link_page(member, token)


@pages.get("/members/<int:member_id>", role=ADMIN)
def member(member_id: int) -> str:
    return _member_page(member_id)


@pages.post("/members/<int:member_id>/link", role=ADMIN)
def make_link(member_id: int) -> str:
    """Make a link and show it in this answer only."""
    row, token = _act(member_id, links.make_link, shown_once=_LINK_LOST)
    return _link_page(row, token)


@pages.post("/members/<int:member_id>/role", role=ADMIN)
def change_role(member_id: int) -> Page:
    form = RoleForm()
    if not form.validate():
        return _member_page(member_id, form), 400
    try:
        row, _ = _act(member_id, _change_role, form.role.data)
    except (ChangedMeanwhile, Refused) as error:
        say_beside(form.role, error.sentence)
        return _member_page(member_id, form), 409
    return to_page("members", f"The role of {row.name} is now {form.role.data}.")


def _change_role(connection: Connection, row: Member, role: str, *, by: int) -> None:
    require_seen(row.role, lambda: latest(connection, actions.ROLE_CHANGED, row.id))
    rows.change_role(connection, row, role, by=by)


@pages.post("/members/<int:member_id>/end-sessions", role=ADMIN)
def end_sessions(member_id: int) -> Page:
    row, ended = _act(member_id, rows.end_sessions)
    return to_page("members", f"{row.name} is signed out everywhere." if ended else f"{row.name} was not signed in.")


@pages.post("/members/<int:member_id>/reset-second-factor", role=ADMIN)
def reset_second_factor(member_id: int) -> Page:
    row, is_news = _act(member_id, partial(second_factor.take_off, everywhere=False))
    return to_page(
        "members", f"{row.name} {'has no' if is_news else 'had no'} second factor{' any more' if is_news else ''}."
    )


@pages.post("/members/<int:member_id>/remove", role=ADMIN, deletes=True)
def remove_member(member_id: int) -> Page:
    """Remove a member, and with them what the form says of what they leave behind."""
    who = current_member()
    try:
        with change() as connection:
            row = rows.lock(connection, member_id, organization_id=who.organization_id)
            left = leaving.left_by(connection, row)
            if request.form.get("seen", "") != left.seen:
                raise ChangedMeanwhile("")
            rows.remove(connection, row, by=who.id)
            leaving.end(connection, left, row, cancels="cancel" in request.form, revokes="revoke" in request.form)
    except (Refused, ChangedMeanwhile, BatchConflict) as error:  # A batch may have been issued meanwhile.
        return to_page("member", error.sentence, "bad", member_id=member_id)
    return to_page("members", f"{row.name} is no longer a member.")


def _act(member_id: int, rule: Callable[..., Any], *values: str, shown_once: str = "") -> tuple[Member, Any]:
    """Do what a form asks for, once, with the member locked; return the member, and what the rule returns."""
    who = current_member()
    with change(shown_once=shown_once) as connection:
        row = rows.lock(connection, member_id, organization_id=who.organization_id)
        return row, rule(connection, row, *values, by=who.id)


def _list_page(form: MemberForm) -> str:
    with single_statement() as connection:
        people = rows.find_all(connection, current_member().organization_id)
    return render_template("console/members.html", members=people, form=form)


def _member_page(member_id: int, form: RoleForm | None = None) -> str:
    with single_statement() as connection:
        row = rows.get_listed(connection, member_id, organization_id=current_member().organization_id)
        left = leaving.left_by(connection, row)
    form = form or RoleForm(formdata=None, role=row.role)
    return render_template("console/member.html", of=row, form=form, left=left)


def _link_page(member: Member, token: str) -> str:
    here = f"{'https' if is_https() else 'http'}://{request.host}"
    url = links.link_to(token, url=settings().public_url or here)
    return render_template("console/link_made.html", of=member, url=url)


@pages.get("/account")
def account() -> str:
    return _account_page(ChangePasswordForm(formdata=None))


@pages.post("/account/password", role=VIEWER)
def change_password() -> Page:
    form = ChangePasswordForm()
    password = chosen_password(form, current_member())
    if password is None:
        return _account_page(form), 400
    token = _with_new_password(form.current.data, password)
    if token is None:
        say_beside(form.current, NOT_YOURS)
        return _account_page(form), 400
    session["token"] = token
    return to_page("account", "The password is changed, and every other session has ended.")


@pages.post("/account/zone", role=VIEWER)
def choose_zone() -> Page:
    """Keep the zone in which the member reads and writes times."""
    form = ZoneForm()
    if not form.validate():
        return _account_page(ChangePasswordForm(formdata=None), form), 400
    with transaction() as connection:
        rows.choose_zone(connection, rows.lock(connection, current_member().id), form.zone.data)
    return to_page("account", f"Times are those of {form.zone.data} from now on.")


@pages.post("/account/mail", role=VIEWER)
def choose_mails() -> Page:
    """Keep the kinds of mail that the member wants."""
    form = MailForm()
    if not form.validate():
        return _account_page(ChangePasswordForm(formdata=None)), 400
    with transaction() as connection:
        mails.choose(connection, rows.lock(connection, current_member().id), form.kinds.data)
    return to_page("account", "Your choice of e-mails is kept.")


@pages.post("/account/sessions/<int:session_id>/end", role=VIEWER)
def end_session(session_id: int) -> Page:
    with transaction() as connection:
        sessions.end(connection, session_id, member_id=current_member().id)
    return to_page("account", "The session has ended.")


@pages.post("/account/organizations/<int:member_id>", role=VIEWER)
def go_on(member_id: int) -> Page:
    """Go on in another organization of the same person, by the sign-in of this one."""
    with transaction() as connection:
        token = sessions.go_on(connection, g.session_id, place(), own_id=current_member().id, other_id=member_id)
    sign_in_with(token)
    return to_page("overview", mode=LIVE)


def _with_new_password(current: str, password: str) -> str | None:
    """Change the password and return the token of a new session; None if the current password is wrong."""
    if not is_own_password(current):
        return None
    password_hash = hashed(password, current_member())
    with change() as connection:
        member = rows.lock(connection, current_member().id)
        links.choose_password(connection, member, password_hash)
        return sessions.begin(connection, member.id, password_hash, place())


def _account_page(form: ChangePasswordForm, zone_form: ZoneForm | None = None) -> str:
    with snapshot() as connection:
        row = rows.get_listed(connection, current_member().id, organization_id=current_member().organization_id)
        own = sessions.find_all(connection, row.id)
        others = sessions.find_others(connection, g.session_id)
        mail_form = MailForm(formdata=None, kinds=mails.wanted_by(connection, row.id))
    zone_form = zone_form or ZoneForm(formdata=None, zone=current_zone())
    of = {"of": row, "sessions": own, "own": g.session_id, "others": others}
    return render_template("console/account.html", form=form, zone_form=zone_form, mail_form=mail_form, **of)
