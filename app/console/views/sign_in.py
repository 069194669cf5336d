"""Signing in, by e-mail address and password or by the link that lets a member choose a password; and out."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from flask import flash, g, redirect, render_template, request, session, url_for
from sqlalchemy import Connection

from app.actions import log as actions
from app.console.blueprints import ROOT, Page, current_member, door, pages, to_page
from app.console.browser import Kept, sent_along, sign_in_page, sign_in_with
from app.console.forms import ChoosePasswordForm, CodeForm, SignInForm, say_beside
from app.console.slow_work import Busy, password_work, refused_form
from app.errors import InvalidAddress, Refused
from app.members import links, second_step, sessions, tries
from app.members.members import VIEWER, Member
from app.members.place import Place, place_of
from app.members.second_step import Begun
from app.members.tries import Try
from app.postgres.database import single_statement, transaction
from app.values import passwords
from app.values.addresses import parse

# Of who is signed in.
NOT_YOURS = "This is not your password, or the account is locked: ten wrong passwords lock it."
# One sentence for all cases, so that it does not reveal who is a member or whether a guess was near.
WRONG = (
    "The e-mail address or the password is wrong, or the account is locked: ten wrong passwords lock it for 15 minutes."
)

WRONG_CODE = "The code is wrong or was used, or the account is locked: ten wrong passwords or codes lock it."

_Outcome = TypeVar("_Outcome")
_PAGE = re.compile(rf"{ROOT}/[a-z]+(?:/[A-Za-z0-9_?&=%.,:+-]+)*\Z")


@door.route("/sign-in", methods=["GET", "POST"])
def sign_in() -> Page:
    form, kept = SignInForm(), sent_along()
    if not form.validate_on_submit():
        return _page(form, kept)
    try:
        begun = _begin_for(form.email.data, form.password.data)
    except Busy as error:
        say_beside(form.password, error.sentence)
        return refused_form(_page(form, kept), error)
    if begun is None:
        say_beside(form.password, WRONG)
        return _page(form, kept), 403
    if begun.awaits_code:
        session["awaits_code"] = begun.token
        return _code_page(CodeForm(formdata=None), kept)
    return _come_in(begun.token, kept)


@door.route("/sign-in/code", methods=["GET", "POST"])
def give_code() -> Page:
    """Take a code of the second factor, after the password."""
    form, kept = CodeForm(), sent_along()
    with single_statement() as connection:
        waiting = second_step.find(connection, session.get("awaits_code", ""))
    if waiting is None:
        flash("Sign in again: it took too long, or was ended.", "bad")
        return redirect(url_for("console_door.sign_in", next=request.args.get("next")), 303)
    if not form.validate_on_submit():
        return _code_page(form, kept)

    def use(connection: Connection) -> str | None:
        return second_step.enter(connection, waiting, form.code.data, place())

    token = with_code(waiting.email_key, waiting.member_id, use)
    if token is None:
        say_beside(form.code, WRONG_CODE)
        return _code_page(form, kept), 403
    return _come_in(token, kept)


def with_code(
    email_key: str,
    member_id: int,
    use: Callable[[Connection], _Outcome | None],
    *,
    opens: Callable[[], AbstractContextManager[Connection]] = transaction,
) -> _Outcome | None:
    """Return what `use` makes of a code, in a transaction that `opens` begins.

    None: the code is wrong, which is counted like a wrong password, or the account is locked.
    """
    with transaction() as connection:
        counted = tries.count_try(connection, email_key, member_id=member_id)
    if not counted:
        return None
    with opens() as connection:
        outcome = use(connection)
        if outcome is None:
            tries.note_wrong(connection, counted, place(), action=actions.WRONG_CODE)
        else:
            tries.take_back(connection, counted)
    return outcome


def _code_page(form: CodeForm, kept: Kept | None) -> str:
    return render_template("console/code.html", form=form, kept=kept, page=request.args.get("next"))


def _come_in(token: str, kept: Kept | None) -> Page:
    """Begin the browser's session, and go on where the sign-in was asked for."""
    sign_in_with(token)
    wanted = request.args.get("next", "")
    page = wanted if _PAGE.match(wanted) else url_for("console.overview", mode="live")
    if kept is not None and kept.fields:
        return render_template("console/go_on.html", kept=kept, page=page)
    if kept is not None:
        flash("You are signed in again. Nothing was issued or changed: look at this page and send the form again.")
    return redirect(page, 303)


def _page(form: SignInForm, kept: Kept | None) -> str:
    return sign_in_page(form, kept, page=request.args.get("next"), over=request.args.get("over"))


def _begin_for(email: str, password: str) -> Begun | None:
    """Begin a session, or return None. An unknown address takes as much work as a known address."""
    try:
        email_key = parse(email).key
    except InvalidAddress:
        email_key = ""
    right = right_tries(email_key, password)
    if not right:
        return None
    with transaction() as connection:
        return second_step.sign_in(connection, right, place(), last_id=session.get("member_id"))


def right_tries(email_key: str, password: str, *, member_id: int | None = None) -> list[Try]:
    """Return the tries of the members with an address (or of the given one) whose password this is.

    That it is wrong is noted; if it is right for another member of the person, only what it locks.
    """
    with transaction() as connection:
        counted = tries.count_try(connection, email_key, member_id=member_id)
    with password_work.turn():
        right_hashes = passwords.right_ones(password, [each.password_hash for each in counted])
    wrong = [each for each in counted if each.password_hash not in right_hashes and (each.locks or not right_hashes)]
    if wrong or not right_hashes:
        with transaction() as connection:
            tries.note_wrong(connection, wrong, place())
    return [each for each in counted if each.password_hash in right_hashes]


def is_own_password(password: str) -> bool:
    """Tell whether this is the password of the signed-in member, who is asked for it again."""
    member = current_member()
    right = right_tries(parse(member.email).key, password, member_id=member.id)
    with transaction() as connection:
        return any(tries.forget(connection, each.member_id, each.password_hash) for each in right)


@pages.post("/sign-out", role=VIEWER)
def sign_out() -> Page:
    """End the session in the database too, not only in the browser."""
    with transaction() as connection:
        sessions.end(connection, g.session_id, member_id=current_member().id)
    session.pop("token")
    flash("You are signed out.")
    return redirect(url_for("console_door.sign_in", next=url_for("console.overview")), 303)


@door.route("/link/<token>", methods=["GET", "POST"])
def link(token: str) -> Page:
    with single_statement() as connection:
        member = links.find_by_link(connection, token)
    if member is None:
        return render_template("console/link_over.html"), 404
    form = ChoosePasswordForm()
    password = chosen_password(form, member)
    if password is None:
        return render_template("console/link.html", form=form, of=member)
    password_hash = hashed(password, member)
    with transaction() as connection:
        member = links.find_by_link(connection, token)  # Another request may have used it up.
        if member is None:
            return render_template("console/link_over.html"), 404
        links.choose_password(connection, member, password_hash)
        begun = second_step.begin(connection, member.id, password_hash, place())
    assert begun is not None, "the password was chosen in the same transaction"
    if begun.awaits_code:
        session["awaits_code"] = begun.token
        return redirect(url_for("console_door.give_code"), 303)
    sign_in_with(begun.token)
    return to_page("overview", mode="live")


def hashed(password: str, member: Member) -> str:
    """Return the text by which the password that a member has chosen is stored."""
    with single_statement() as connection:
        like = links.password_like(connection, member)
    with password_work.turn():
        return passwords.hash_password(password, like)


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


def place() -> Place:
    """Return where the request comes from."""
    forwarded = request.headers.get("X-Forwarded-For", "")
    return place_of(request.user_agent.string, request.remote_addr or "", forwarded)
