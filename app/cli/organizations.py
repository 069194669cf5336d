"""`points organizations`: make them, show them, refill them, and stop them from issuing."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click
from sqlalchemy import Connection

from app import organizations as rows
from app.cli.answer import Answer, columns
from app.cli.operator_command import change_command, read_command
from app.cli.options import ORGANIZATION_ID, Command
from app.ledger.refill import open_organization, refill_once
from app.settings import INT64_MAX, settings
from app.values.numbers import points
from app.values.texts import REFERENCE, REFERENCE_LENGTH_MAX
from app.values.timestamps import HOLD_DAYS_MAX


def _state(row: Mapping[str, Any]) -> str:
    """Return what keeps an organization from issuing, or that it may issue."""
    return ", ".join(state for state in ("disabled", "suspended") if row[f"is_{state}"]) or "may issue"


def _approval(row: Mapping[str, Any]) -> str:
    """Return which sends await an approval."""
    above = row["approval_above"]
    return "never" if above is None else f"{row['approval_of']} above {points(above)}"


_COLUMNS = columns(
    *("id", "name", "external_id", "balance", ("After last refill", "last_refill"), ("Sandbox", "sandbox_balance")),
    ("Low below", "low_balance"),
    ("Held", lambda row: "for ever" if row["held_days"] is None else f"{row['held_days']} days"),
    *(("Approval", _approval), ("State", _state), "created_at"),
)
_POINTS = click.IntRange(0, INT64_MAX)

_organization_argument = click.argument("organization_id", metavar="ID", type=ORGANIZATION_ID)


class _NumberOrNone(click.ParamType[Any]):
    """A number, or `none`, which stays a word: for click, None means that the option is not given."""

    name = "number"

    def __init__(self, at_least: int, at_most: int) -> None:
        self._range = click.IntRange(at_least, at_most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "none" else self._range.convert(value, param, ctx)


def _or_none(at_least: int, at_most: int, *names: str, words: str) -> Callable[[Command], Command]:
    return click.option(*names, type=_NumberOrNone(at_least, at_most), metavar="N|none", help=words)


@click.group()
def organizations() -> None:
    """Make, show, refill, disable and suspend organizations."""


@organizations.command()
@click.argument("name")
@click.option("--balance", type=_POINTS, default=0, show_default=True, help="Opening live balance, a refill.")
@click.option("--sandbox-balance", type=_POINTS, help="Opening sandbox balance [default: POINTS_SANDBOX_BALANCE].")
@click.option("--external-id", help="Your own id of it. With the same one and the same name again, nothing is made.")
@partial(change_command, makes_data=True)
def create(
    connection: Connection, name: str, balance: int, sandbox_balance: int | None, external_id: str | None
) -> Answer:
    """Make an organization. Its opening balances are refills."""
    start = settings().sandbox_balance if sandbox_balance is None else sandbox_balance
    if external_id is not None and not REFERENCE.fullmatch(external_id):
        raise click.UsageError(f"--external-id must be 1 to {REFERENCE_LENGTH_MAX} visible characters.")
    made, is_new = open_organization(connection, name, balance=balance, sandbox_balance=start, external_id=external_id)
    sentence = f"Made organization {made.id}." if is_new else f"Nothing was made: it is organization {made.id}."
    return Answer(made, columns=_COLUMNS, sentence=f"{sentence} Next: points keys create {made.id}")


@organizations.command(name="list")
@read_command
def list_organizations(connection: Connection) -> Answer:
    """List all organizations."""
    return Answer(rows.find_all_whole(connection), columns=_COLUMNS)


@organizations.command()
@_organization_argument
@read_command
def show(connection: Connection, organization_id: int) -> Answer:
    """Show one organization."""
    return _show(connection, organization_id)


class _WithNegative(click.Command):
    """A command with a number that may be negative, and so is not an option; `--` before it changes nothing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.ignore_unknown_options = True
        return super().parse_args(ctx, [word for word in args if word != "--"])


@organizations.command(cls=_WithNegative)
@_organization_argument
@click.argument("amount", type=int)
@click.option("--sandbox", is_flag=True, help="Refill the sandbox balance instead of the live one.")
@click.option("--reference", help="Your own name for this refill. With the same name again, nothing is booked.")
@change_command
def refill(connection: Connection, organization_id: int, amount: int, sandbox: bool, reference: str | None) -> Answer:
    """Add AMOUNT points to an organization's balance. Below 0, it corrects a refill, and needs a --reference."""
    booked = refill_once(connection, organization_id, amount, sandbox=sandbox, reference=reference)
    mode = "sandbox" if sandbox else "live"
    sentence = f"Refilled {points(amount)} points; the {mode} balance is {points(booked.refill.balance)}."
    if not booked.is_new:
        before = f"the refill of {points(amount)} {mode} points with this reference was booked before"
        sentence = f"Nothing was booked: {before}."
    return _show(connection, organization_id, sentence)


_DAYS = f"For how many days points may be held, 1 to {HOLD_DAYS_MAX}; none: for ever."
_LOW = "Write an event when the live balance falls below this; none: never."


@organizations.command(name="set")
@_organization_argument
@_or_none(1, HOLD_DAYS_MAX, "--held-days", words=_DAYS)
@_or_none(1, INT64_MAX, "--low-balance", words=_LOW)
@change_command
def set_values(connection: Connection, organization_id: int, **given: Any) -> Answer:
    """Set options of an organization, from its next batch on."""
    return _changed(connection, organization_id, "give --held-days, --low-balance, or both", **given)


_ABOVE = "Sends of more points than this await an approval; none: no send does."
_OF = "Of the console's sends, or of all: those of keys too."


@organizations.command()
@_organization_argument
@_or_none(0, INT64_MAX, "--above", "approval_above", words=_ABOVE)
@click.option("--of", "approval_of", type=click.Choice(rows.APPROVAL_OF), help=_OF)
@change_command
def approval(connection: Connection, organization_id: int, **given: Any) -> Answer:
    """Set which sends await an approval by another than their sender, from the next send on."""
    return _changed(connection, organization_id, "give --above, --of, or both", **given)


def _flag_command(name: str, sentence: str, **flag: bool) -> None:
    @organizations.command(name=name, help=sentence)
    @_organization_argument
    @change_command
    def command(connection: Connection, organization_id: int) -> Answer:
        return _changed(connection, organization_id, "", **flag)


_flag_command("disable", "Disable an organization: it can no longer issue.", is_disabled=True)
_flag_command("enable", "Enable a disabled organization.", is_disabled=False)
_flag_command("suspend", "Suspend an organization: it cannot issue until it is resumed.", is_suspended=True)
_flag_command("resume", "Resume a suspended organization.", is_suspended=False)


def _changed(connection: Connection, organization_id: int, way_out: str, **given: Any) -> Answer:
    changes = {name: None if value == "none" else value for name, value in given.items() if value is not None}
    if not changes:
        raise click.UsageError(f"Nothing is set: {way_out}.")
    return Answer(rows.change(connection, organization_id, changes), columns=_COLUMNS)


def _show(connection: Connection, organization_id: int, sentence: str | None = None) -> Answer:
    """Answer with an organization as it is at the end of a transaction: if this fails, nothing was done."""
    return Answer(rows.get_whole(connection, organization_id), columns=_COLUMNS, sentence=sentence)
