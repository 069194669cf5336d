"""*Members*: add them with a link, change roles, make new links, end sessions, remove members."""

from flask import render_template, request
from sqlalchemy import Connection

from app.console.blueprints import Page, current_member, pages, to_page
from app.console.caller import change
from app.console.cookie import is_https
from app.console.forms import MemberForm, RoleForm, say_beside
from app.errors import Refused
from app.members import links
from app.members import members as rows
from app.members.members import ADMIN, Member
from app.postgres.database import transaction

_LINK_LOST = "The link was shown then. If it was not copied, make another on the member's page."


@pages.get("/members", role=ADMIN)
def members() -> str:
    return _page(MemberForm(formdata=None))


@pages.post("/members", role=ADMIN)
def add_member() -> Page:
    form, who = MemberForm(), current_member()
    if not form.validate():
        return _page(form), 400
    names = form.email.data, form.first_name.data, form.last_name.data or ""
    try:
        with change(shown_once=_LINK_LOST) as connection:
            member_id, token = links.add(connection, who.organization_id, *names, role=form.role.data, by=who.id)
            made = rows.lock(connection, member_id)
    except Refused as error:  # The form has checked the names, so this is about the address.
        say_beside(form.email, error.sentence)
        return _page(form), 400
    return _link_page(made, token)


@pages.get("/members/<int:member_id>", role=ADMIN)
def member(member_id: int) -> str:
    return _member_page(member_id)


@pages.post("/members/<int:member_id>/link", role=ADMIN)
def make_link(member_id: int) -> str:
    """Make a link and show it in this answer only."""
    with change(shown_once=_LINK_LOST) as connection:
        found = _own(connection, member_id)
        token = links.make_link(connection, found, by=current_member().id)
    return _link_page(found, token)


@pages.post("/members/<int:member_id>/role", role=ADMIN)
def change_role(member_id: int) -> Page:
    form = RoleForm()
    if not form.validate():
        return _member_page(member_id, form), 400
    try:
        with change() as connection:
            found = _own(connection, member_id)
            rows.change_role(connection, found, form.role.data, by=current_member().id)
    except Refused as error:
        say_beside(form.role, error.sentence)
        return _member_page(member_id, form), 409
    return to_page("members", f"The role of {found.name} is now {form.role.data}.")


@pages.post("/members/<int:member_id>/end-sessions", role=ADMIN)
def end_sessions(member_id: int) -> Page:
    with change() as connection:
        found = _own(connection, member_id)
        ended = rows.end_sessions(connection, found, by=current_member().id)
    return to_page(
        "members", f"{found.name} is signed out everywhere." if ended else f"{found.name} was not signed in."
    )


@pages.post("/members/<int:member_id>/remove", role=ADMIN)
def remove_member(member_id: int) -> Page:
    try:
        with change() as connection:
            found = _own(connection, member_id)
            rows.remove(connection, found, by=current_member().id)
    except Refused as error:
        return to_page("members", error.sentence, "bad")
    return to_page("members", f"{found.name} is no longer a member.")


def _own(connection: Connection, member_id: int) -> Member:
    return rows.lock(connection, member_id, organization_id=current_member().organization_id)


def _page(form: MemberForm) -> str:
    with transaction() as connection:
        found = rows.find_all(connection, current_member().organization_id)
    return render_template("console/members.html", members=found, form=form)


def _member_page(member_id: int, form: RoleForm | None = None) -> str:
    with transaction() as connection:
        found = rows.get_listed(connection, member_id, organization_id=current_member().organization_id)
    form = form or RoleForm(formdata=None, role=found.role)
    return render_template("console/member.html", of=found, form=form)


def _link_page(member: Member, token: str) -> str:
    url = links.link_to(f"{'https' if is_https() else 'http'}://{request.host}", token)
    return render_template("console/link_made.html", of=member, url=url)
