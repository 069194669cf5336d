"""*Settings* of the organization: what they are, who changed them, and a change with its effect said first."""

import hashlib
from typing import Any, NamedTuple

import orjson
from flask import render_template, request
from sqlalchemy import Connection

from app import organizations
from app.batches.batch import AWAITING_APPROVAL, SCHEDULED
from app.batches.waiting import waiting_of
from app.console.blueprints import Page, current_member, pages, to_page
from app.console.caller import ChangedMeanwhile, change
from app.console.forms import SETTING_LABELS, SettingsForm, say_beside, setting_text
from app.console.views.activity import who
from app.console.views.sign_in import NOT_YOURS, is_own_password
from app.encryption import SecretsKeyMissing
from app.members import members
from app.members.members import ADMIN
from app.organizations import WholeOrganization
from app.pages import action_pages
from app.pages.filters import Filters
from app.postgres.database import snapshot
from app.postgres.locks import lock_organization
from app.settings import settings as app_settings
from app.values.numbers import counted

_CHANGES_READ = 100


@pages.get("/settings", role=ADMIN)
def settings() -> str:
    with snapshot() as connection:
        now = organizations.get_whole(connection, current_member().organization_id)
    shown = {name: setting_text(value) for name, value in _values(now).items()}
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
            if form.seen.data != _plan(connection, new).seen:
                raise ChangedMeanwhile("")
            organizations.change(connection, organization_id, new)
    except ChangedMeanwhile as error:
        say_beside(form.current, error.sentence)
        return _asking(form, new, error.status)
    return to_page("settings", "The settings are changed.")


def _values(of: WholeOrganization) -> dict[str, Any]:
    return {name: getattr(of, name) for name in SETTING_LABELS}


def _settings_page(form: SettingsForm) -> str:
    filters = Filters(organization_id=current_member().organization_id, sandbox=False, about="organization")
    with snapshot() as connection:
        changes = action_pages.page(connection, filters, start=None, limit=_CHANGES_READ).rows
    last = {
        name: next(((row, who(row)) for row in changes if f"{name}: " in (row.detail or "")), None)
        for name in SETTING_LABELS
    }
    return render_template("console/settings.html", form=form, last=last)


class Plan(NamedTuple):
    """What a change changes (each setting with its value before and after), and what comes of it, in sentences."""

    changes: list[tuple[str, Any, Any]]
    effects: list[str]

    @property
    def seen(self) -> str:
        """Return a text that differs when the page would say something else."""
        return hashlib.sha256(orjson.dumps(list(self))).hexdigest()


def _asking(form: SettingsForm, new: dict[str, Any], status: int = 200) -> Page:
    with snapshot() as connection:
        plan = _plan(connection, new)
    if not plan.changes:
        return to_page("settings", "Nothing was changed: the settings are these already.")
    form.seen.data = plan.seen
    return render_template("console/settings_change.html", form=form, plan=plan, new=new), status


def _plan(connection: Connection, new: dict[str, Any]) -> Plan:
    now = organizations.get_whole(connection, current_member().organization_id)
    changes = [(name, before, new[name]) for name, before in _values(now).items() if new[name] != before]
    of_change = {
        "approval_above": _of_approval,
        "approval_of": _of_approval,
        "held_days": _of_held_days,
        "low_balance": _of_low_balance,
        "requires_second_factor": _of_second_factor,
    }
    told = dict.fromkeys(of_change[name] for name, _, _ in changes)
    return Plan(changes, [sentence for tell in told for sentence in tell(connection, now, new)])


def _of_approval(connection: Connection, now: WholeOrganization, new: dict[str, Any]) -> list[str]:
    limit, waiting = new["approval_above"], waiting_of(connection, now.id)
    awaiting = [batch for batch in waiting if batch.status == AWAITING_APPROVAL]
    scheduled = [batch for batch in waiting if batch.status == SCHEDULED]
    says = ["The new limit holds for what is sent from now on."]
    if awaiting:
        within = "" if limit is None else f", {sum(batch.points <= limit for batch in awaiting)} within the new limit"
        says.append(f"What awaits approval still needs it: {counted(len(awaiting), 'batch', 'es')}{within}.")
    if scheduled:
        above = "" if limit is None else f", {sum(batch.points > limit for batch in scheduled)} above the new limit"
        says.append(f"What is scheduled needs no other approval: {counted(len(scheduled), 'batch', 'es')}{above}.")
    return says


def _of_held_days(_connection: Connection, now: WholeOrganization, _new: dict[str, Any]) -> list[str]:
    return [
        "The new days hold for what is issued from now on, also for batches that are scheduled already.",
        "What is held now keeps its end, and a send that says its own days keeps them.",
    ]


def _of_low_balance(_connection: Connection, now: WholeOrganization, new: dict[str, Any]) -> list[str]:
    limit = new["low_balance"]
    is_low = limit is not None and now.balance < limit
    return [f"The live balance is {counted(now.balance, 'point')}: {'low' if is_low else 'not low'} by the new figure."]


def _of_second_factor(connection: Connection, now: WholeOrganization, new: dict[str, Any]) -> list[str]:
    if not new["requires_second_factor"]:
        return ["Members may turn their second factor off again; until then signing in asks for its code."]
    without = sum(not member.has_second_factor for member in members.find_all(connection, now.id))
    return [f"Who has none must set it up before anything else, with the next page: {counted(without, 'member')}."]
