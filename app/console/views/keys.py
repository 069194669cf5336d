"""*Keys*: make a key and show it once, list keys, revoke them."""

from flask import flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app import api_keys
from app.console.blueprints import current_member, needs, pages
from app.console.caller import record_action
from app.console.one_effect import change
from app.members import actions
from app.members.members import ADMIN
from app.postgres.database import transaction


@pages.get("/keys")
@needs(ADMIN)
def keys() -> str:
    with transaction() as connection:
        rows = api_keys.find_all(connection, current_member().organization_id)
    return render_template("console/keys.html", keys=rows[::-1])


@pages.post("/keys")
@needs(ADMIN)
def make_key() -> str:
    """Make a key and show it in this answer only: neither a reload nor going back shows it again."""
    sandbox = request.form.get("mode") != "live"
    lost = "The key was shown then. If it was not copied, revoke it and make another."
    with change(shown_once=lost) as connection:
        key_id, text = api_keys.create(connection, current_member().organization_id, sandbox=sandbox)
        record_action(connection, actions.KEY_MADE, key_id, sandbox=sandbox)
    return render_template("console/key_made.html", key_id=key_id, key=text, sandbox=sandbox)


@pages.post("/keys/<int:key_id>/revoke")
@needs(ADMIN)
def revoke_key(key_id: int) -> Response:
    organization_id = current_member().organization_id
    with transaction() as connection:
        _, is_news = api_keys.revoke(connection, key_id, organization_id=organization_id)
        if is_news:
            record_action(connection, actions.KEY_REVOKED, key_id)
    flash(f"Key {key_id} is revoked." if is_news else f"Key {key_id} was already revoked.")
    return redirect(url_for("console.keys"), 303)
