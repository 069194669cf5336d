"""Deciding on a batch, or on a whole list: in one transaction, in its order, and only as the page showed it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flask import request, url_for
from sqlalchemy import Connection

from app.actions import log as actions
from app.api_keys import Caller
from app.batches import schedule
from app.batches.batch import ISSUED, REFUSED, Batch, batches
from app.console.blueprints import Page, current_scope, to_page
from app.console.caller import calling_member, change, record
from app.console.views.activity import latest
from app.errors import NotFound, Refused
from app.postgres.database import transaction
from app.uploads import listed, uploads
from app.uploads.uploads import UploadRow
from app.values.numbers import counted
from app.values.timestamps import timestamp


class Target(NamedTuple):
    """What a page asks about: a batch, or the batches of a list in its order. `of` are the values of its address."""

    of: dict[str, Any]
    batches: Sequence[Batch]
    upload: UploadRow | None

    @property
    def is_list(self) -> bool:
        return "token" in self.of

    @property
    def name(self) -> str:
        return f"the list “{self.upload.name}”" if self.is_list and self.upload else f"batch {self.batches[0].id}"

    @property
    def noun(self) -> str:
        return "list" if self.is_list else "batch"

    @property
    def address(self) -> str:
        return url_for(f"console.{'outcome' if self.is_list else 'show_batch'}", **self.of)

    @property
    def seen(self) -> str:
        """Return a text that tells later what has become of each batch since."""
        return " ".join(map(_state_of, self.batches))

    def having(self, statuses: Sequence[str]) -> list[Batch]:
        return [batch for batch in self.batches if batch.status in statuses]

    def due(self, statuses: Sequence[str]) -> Sequence[Batch]:
        """Return what a form decides on: the batch, or those of the list in one of these statuses."""
        return self.having(statuses) if self.is_list else self.batches

    def changes(self, connection: Connection) -> str:
        """Return what has become of batches of a list since the page of the form showed them; empty: nothing."""
        changed = [batch for batch in self.batches if self.is_list and not _is_as_shown(batch)]
        return "; ".join(became(connection, batch) for batch in changed)

    def told(self, batches: Sequence[Batch], what: str) -> str:
        """Return a sentence about what these batches of it are now."""
        if not self.is_list:
            return f"Batch {self.batches[0].id} is {what}"
        return f"{counted(len(batches), 'batch', 'es')} of this list {'is' if len(batches) == 1 else 'are'} {what}"

    def page(self, sentence: str = "", mood: str = "message") -> Page:
        return to_page("outcome" if self.is_list else "show_batch", sentence, mood, **self.of)


def _state_of(batch: Batch) -> str:
    return f"{batch.id}/{batch.status}/{batch.send_at and timestamp(batch.send_at)}"


def _is_as_shown(batch: Batch) -> bool:
    return _state_of(batch) in request.form.get("seen", "").split()


def became(connection: Connection, batch: Batch) -> str:
    """Say what has become of a batch, and who has done it: that it is issued or refused, nobody has."""
    done = "" if batch.status in (ISSUED, REFUSED) else latest(connection, "batch", batch.id).rstrip(".")
    return f"batch {batch.id} is {batch.status.replace('_', ' ')}{f' ({done})' if done else ''}"


def require_as_shown(connection: Connection, batch: Batch) -> None:
    """Check that a batch is as the page of the form has shown it.

    Raises:
        ListChanged: it is not.
    """
    if not _is_as_shown(batch):
        raise ListChanged(became(connection, batch), what="the batch")


def target_of(connection: Connection, of: dict[str, Any], *, lock: bool = False) -> Target:
    """Return the batch or the list of an address. With `lock`, nobody else decides on it until the transaction ends.

    Raises:
        NotFound: there is no such batch, or no such list that was sent.
        NotKnown: somebody holds its organization.
    """
    upload = uploads.get(connection, of["token"], current_scope()) if "token" in of else None
    ids = [of["batch_id"]] if upload is None else list(upload.batch_ids or ())
    if not ids:
        raise NotFound("sent list", of["token"])
    if lock:  # The drains and all other decisions wait for the organization's row.
        schedule.lock_batch(connection, ids[0], current_scope())
    if upload is None and (its_list := listed.of_batch(connection, ids[0], current_scope())):
        upload = uploads.get(connection, its_list.token, current_scope())
    return Target(of, [batches.get(connection, batch_id, current_scope()) for batch_id in ids], upload)


class ListChanged(Refused):
    """Somebody has decided on the batch, or on one of the list, since the page showed it."""

    def __init__(self, changes: str, what: str = "the list") -> None:
        super().__init__(f"Nothing was changed, because {what} is not what the page showed: {changes}. Look again.")


Rule = Callable[[Connection, Caller, Batch], Any]


class Decided(NamedTuple):
    """The batches that were decided on, what the rule returned for each, and what had become of others meanwhile."""

    target: Target
    batches: Sequence[Batch]
    news: Sequence[Any]
    changes: str


def decide(
    of: dict[str, Any], action: str, statuses: Sequence[str], rule: Rule, *, detail: str = "", is_bound: bool = True
) -> Decided:
    """Do what a form asks for with each batch that is due, or with none of them, and record it if it is news.

    Args:
        rule: returns whether it is.
        is_bound: a list that is not as the page showed it is left alone.

    Raises:
        ListChanged: it is not.
        PointsError: of the rule.
    """
    with change() if "token" in of else transaction() as connection:  # A batch that is decided again is not changed.
        who, target = calling_member(connection), target_of(connection, of, lock=True)
        changes, due = target.changes(connection), target.due(statuses)
        if changes and is_bound:
            raise ListChanged(changes)
        news = [rule(connection, who, batch) for batch in due]
        more = f"with {counted(len(due) - 1, 'more batch', 'es')} of its list" if len(due) > 1 else ""
        told = ", ".join(filter(None, (more, detail)))[: actions.DETAIL_LENGTH_MAX]
        for batch, is_news in zip(due, news, strict=True):
            if is_news:
                record(connection, action, batch.id, told or None)
    return Decided(target, due, news, changes)
