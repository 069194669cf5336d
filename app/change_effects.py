"""What a change of an organization's options changes, and what becomes of what waits, in sentences."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection

from app import organizations
from app.batches.batch import AWAITING_APPROVAL, SCHEDULED
from app.batches.waiting import waiting_of
from app.members import members
from app.organizations import WholeOrganization
from app.values.numbers import counted


class Plan(NamedTuple):
    """What a change changes (each setting with its value before and after), and what comes of it, in sentences."""

    changes: list[tuple[str, Any, Any]]
    effects: list[str]

    @property
    def seen(self) -> str:
        """Return a text that differs when the page would say something else."""
        return hashlib.sha256(orjson.dumps(list(self))).hexdigest()


def plan_of(connection: Connection, organization_id: int, new: Mapping[str, Any]) -> Plan:
    """Return what these values would change of an organization."""
    now = organizations.get_whole(connection, organization_id)
    changes = [(name, getattr(now, name), value) for name, value in new.items() if getattr(now, name) != value]
    told = dict.fromkeys(_EFFECTS[name] for name, _, _ in changes)
    return Plan(changes, [sentence for tell in told for sentence in tell(connection, now, new)])


def _of_approval(connection: Connection, now: WholeOrganization, new: Mapping[str, Any]) -> list[str]:
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


def _of_held_days(_connection: Connection, now: WholeOrganization, _new: Mapping[str, Any]) -> list[str]:
    return [
        "The new days hold for what is issued from now on, also for batches that are scheduled already.",
        "What is held now keeps its end, and a send that says its own days keeps them.",
    ]


def _of_low_balance(_connection: Connection, now: WholeOrganization, new: Mapping[str, Any]) -> list[str]:
    limit = new["low_balance"]
    is_low = limit is not None and now.balance < limit
    return [f"The live balance is {counted(now.balance, 'point')}: {'low' if is_low else 'not low'} by the new figure."]


def _of_second_factor(connection: Connection, now: WholeOrganization, new: Mapping[str, Any]) -> list[str]:
    if not new["requires_second_factor"]:
        return ["Members may turn their second factor off again; until then signing in asks for its code."]
    without = sum(not member.has_second_factor for member in members.find_all(connection, now.id))
    return [f"Who has none must set it up before anything else, with the next page: {counted(without, 'member')}."]


_EFFECTS = {
    "approval_above": _of_approval,
    "approval_of": _of_approval,
    "held_days": _of_held_days,
    "low_balance": _of_low_balance,
    "requires_second_factor": _of_second_factor,
}
