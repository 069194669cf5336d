"""*Keys*: make one and show it once, list and revoke them. *Requests*: what programs called with them."""

from functools import partial

from flask import render_template, request

from app import api_keys
from app.console.blueprints import LIVE, Page, current_member, pages, to_page
from app.console.caller import calling_member, change, signed_in
from app.console.forms import KeyForm, in_words, say_beside
from app.console.searching import RequestSearch, listed
from app.errors import Refused
from app.members.members import ADMIN
from app.pages import lists
from app.postgres.database import transaction
from app.values.texts import with_name

_LOST = "The key was shown then. If it was not copied, revoke it and make another."


@pages.get("/keys", role=ADMIN)
def keys() -> str:
    return _page(KeyForm(formdata=None))


@pages.post("/keys", role=ADMIN)
def make_key() -> Page:
    """Make a key and show it in this answer only: neither a reload nor going back shows it again."""
    form = KeyForm()
    bounds = form.bounds() if form.validate() else None
    if bounds is None:
        return _page(form), 400
    sandbox, name = form.mode.data != LIVE, form.name.data or None
    try:
        with change(shown_once=_LOST) as connection:
            key_id, text = api_keys.create(
                connection, current_member().organization_id, sandbox=sandbox, name=name, bounds=bounds
            )
    except Refused as error:
        say_beside(form.name, in_words(error.sentence, form.name.label.text))
        return _page(form), 400
    kind = "Development" if sandbox else "Live"
    title = with_name(f"{kind} key {key_id}", name)
    return render_template("console/key_made.html", key=text, title=title, bounds=bounds.in_words())


@pages.post("/keys/<int:key_id>/revoke", role=ADMIN)
def revoke_key(key_id: int) -> Page:
    organization_id = current_member().organization_id
    with transaction(by=signed_in()) as connection:
        _, is_news = api_keys.revoke(connection, key_id, organization_id=organization_id)
        title = with_name(f"Key {key_id}", api_keys.names_of(connection, [key_id])[key_id])
    return to_page("keys", f"{title} is revoked." if is_news else f"{title} was already revoked.")


def _page(form: KeyForm) -> str:
    with transaction() as connection:
        rows = api_keys.find_all(connection, current_member().organization_id)
    bounds = (form.scopes, form.expires_at, form.batch_limit, form.daily_limit)
    bounds_open = any(field.data or field.errors for field in bounds)
    return render_template("console/keys.html", keys=rows[::-1], form=form, bounds_open=bounds_open)


@pages.get("/requests")
def list_requests() -> str:
    with transaction() as connection:
        who = calling_member(connection)
        keys = api_keys.find_all(connection, who.organization.id)
    form = RequestSearch(request.args, [key for key in keys if key.sandbox == who.sandbox])
    rows, names = listed("requests", who, form, partial(lists.requests, is_far=True))
    return render_template("console/requests.html", requests=rows, **names)
