"""*Settings* of the organization: what they are, who changed them, and a change with its effect said first."""

from typing import Any

from flask import render_template, request

from app import organizations
from app.change_effects import plan_of
from app.console.blueprints import Page, current_member, pages, to_page
from app.console.caller import ChangedMeanwhile, change
from app.console.forms import SettingsForm, say_beside, setting_text
from app.console.views.activity import latest
from app.console.views.sign_in import NOT_YOURS, is_own_password
from app.encryption import SecretsKeyMissing
from app.members.members import ADMIN
from app.organizations import SETTING_LABELS
from app.pages import action_pages
from app.pages.action_words import who
from app.pages.filters import Filters
from app.postgres.database import snapshot
from app.postgres.locks import lock_organization
from app.settings import settings as app_settings

_CHANGES_READ = 100


@pages.get("/settings", role=ADMIN)
def settings() -> str:
    with snapshot() as connection:
        now = organizations.get_whole(connection, current_member().organization_id)
    shown = {name: setting_text(getattr(now, name)) for name in SETTING_LABELS}
    return _settings_page(SettingsForm(formdata=None, data=shown))


@pages.form("/settings/change", role=ADMIN, asks=True)
def change_settings() -> Page:
    """Say what a change does, and make it once the password is given to the page that said so."""
    form = SettingsForm(formdata=request.values)
    new = form.values()
    if new is not None and new["requires_second_factor"] and not app_settings().secrets_key:
        say_beside(form.requires_second_factor, f"Second factor cannot be required: {SecretsKeyMissing.says}")
        new = None
    if new is None:
        return _settings_page(form), 200 if request.method == "GET" else 400
    organization_id = current_member().organization_id
    if request.method == "GET":
        return _asking(form, new)
    if not form.current.validate(form):
        return _asking(form, new, 400)
    if not is_own_password(form.current.data):
        say_beside(form.current, NOT_YOURS)
        return _asking(form, new, 400)
    try:
        with change() as connection:
            lock_organization(connection, organization_id)  # What the page said is compared, and changed, in one.
            if form.seen.data != plan_of(connection, organization_id, new).seen:
                raise ChangedMeanwhile(latest(connection, "organization", organization_id))
            organizations.change(connection, organization_id, new)
    except ChangedMeanwhile as error:
        say_beside(form.current, error.sentence)
        return _asking(form, new, error.status)
    return to_page("settings", "The settings are changed.")


def _settings_page(form: SettingsForm) -> str:
    filters = Filters(organization_id=current_member().organization_id, sandbox=False, about="organization")
    with snapshot() as connection:
        changes = action_pages.page(connection, filters, start=None, limit=_CHANGES_READ).rows
    last = {
        name: next(((row, who(row)) for row in changes if f"{name}: " in (row.detail or "")), None)
        for name in SETTING_LABELS
    }
    return render_template("console/settings.html", form=form, last=last)


def _asking(form: SettingsForm, new: dict[str, Any], status: int = 200) -> Page:
    with snapshot() as connection:
        plan = plan_of(connection, current_member().organization_id, new)
    if not plan.changes:
        return to_page("settings", "Nothing was changed: the settings are these already.")
    form.seen.data = plan.seen
    return render_template("console/settings_change.html", form=form, plan=plan, new=new), status
