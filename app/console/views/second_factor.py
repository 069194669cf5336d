"""The second factor under *Your account*: turned on, and off again, with a code of the app that has its secret."""

import segno
from flask import g, render_template
from sqlalchemy import Connection

from app.console.blueprints import FormTooOld, Page, current_member, pages, to_page
from app.console.caller import change
from app.console.forms import CodeForm, say_beside
from app.console.views.sign_in import WRONG_CODE, with_code
from app.encryption import SecretsKeyMissing, SecretUnreadable, decrypted, encrypted
from app.members import members, second_factor, sessions, tries
from app.members.members import VIEWER
from app.postgres.database import snapshot
from app.values.addresses import parse

_CODES_LOST = "The recovery codes were shown then. If you have not kept them, turn the factor off and on again."


@pages.form("/account/second-factor", role=VIEWER, endpoint="second_factor")
def second_factor_page() -> Page:
    """Show whether there is one, and turn it on or off."""
    form = CodeForm()
    with snapshot() as connection:
        own = members.get_listed(connection, current_member().id, organization_id=current_member().organization_id)
        left = second_factor.recovery_codes_left(connection, current_member()) if own.has_second_factor else None
    if left is None:
        return _turn_on(form)
    if form.validate_on_submit() and _turn_off(form.code.data):
        return to_page("account", "The second factor is turned off.")
    if form.is_submitted() and not form.errors:
        say_beside(form.code, WRONG_CODE)
    return render_template("console/second_factor.html", form=form, left=left), 400 if form.is_submitted() else 200


def _turn_off(code: str) -> bool:
    member = current_member()
    email_key = parse(member.email).key

    def use(connection: Connection) -> bool | None:
        tries.lock_person(connection, email_key)
        return second_factor.turn_off(connection, members.lock(connection, member.id), code) or None

    return bool(with_code(email_key, member.id, use, opens=change))


def _turn_on(form: CodeForm) -> Page:
    member = current_member()
    try:
        secret = _unsealed(form.sealed.data) if form.is_submitted() else second_factor.new_secret()
        form.sealed.data = encrypted(f"{member.id} {secret}")
    except SecretsKeyMissing as error:
        return render_template("console/second_factor.html", form=form, left=None, refusal=error.sentence)
    if form.validate_on_submit():
        with change(shown_once=_CODES_LOST) as connection:
            tries.lock_person(connection, parse(member.email).key)
            also = [other.member_id for other in sessions.find_others(connection, g.session_id)]
            codes = second_factor.turn_on(connection, member, secret, form.code.data, also=also)
        if codes is not None:
            return render_template("console/recovery_codes.html", codes=codes)
        say_beside(form.code, "This is not the code that the app shows now: look at the clock of your device.")
    uri = second_factor.uri_of(secret, member, g.organization_name)
    picture = segno.make(uri, micro=False).svg_inline(omitsize=True, dark="#000", light="#fff")
    shown = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
    page = render_template("console/second_factor.html", form=form, left=None, uri=uri, picture=picture, secret=shown)
    return page, 400 if form.is_submitted() else 200


def _unsealed(sealed: str | None) -> str:
    """Return the secret that a page of this member has offered."""
    try:
        member_id, secret = decrypted((sealed or "").encode("ascii", "replace").decode()).split(" ")
    except (SecretUnreadable, ValueError):
        raise FormTooOld from None
    if member_id != str(current_member().id):
        raise FormTooOld
    return secret
