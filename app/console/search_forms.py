"""The forms by which people search the lists. Nothing is changed, so they are sent by GET, and need no protection."""

from collections.abc import Iterable, Sequence
from typing import Any

from wtforms import EmailField, Form, SelectChoice, SelectField, StringField

from app.api_keys import StoredKey
from app.batches.read import STATES, STATUSES
from app.members.members import Member
from app.pages.filters import BY_API
from app.reversals.read import STATUSES as REVERSAL_STATUSES
from app.values.texts import with_name

_TYPED = {"autocomplete": "off"}
_DAY = {"autocomplete": "off", "type": "date"}
_ANY = SelectChoice("", "any")


def _one_of(label: str, words: Sequence[str]) -> SelectField:
    return SelectField(label, choices=[_ANY, *(SelectChoice(word, word.replace("_", " ")) for word in words)])


class ReversalSearch(Form):
    status = _one_of("Status", REVERSAL_STATUSES)
    created_from = StringField("Requested from", render_kw=_DAY)
    created_to = StringField("Requested to", render_kw=_DAY)


class _SentSearch(Form):
    """A search by who has sent something; `senders` are the members to choose from."""

    sender = SelectField("Sender")

    def __init__(self, formdata: Any, senders: Iterable[Member]) -> None:
        super().__init__(formdata)
        names = [SelectChoice(str(one.id), one.name) for one in senders]
        self.sender.choices = [_ANY, *names, SelectChoice(str(BY_API), "the API")]


class BatchSearch(_SentSearch):
    status = _one_of("Status", STATUSES)
    label = StringField("Label, or a part of it", render_kw=_TYPED)
    email = EmailField("Address of a recipient", render_kw=_TYPED)
    sender = SelectField("Sender")
    points = StringField("Points issued", render_kw=_TYPED)
    created_from = StringField("Accepted from", render_kw=_DAY)
    created_to = StringField("Accepted to", render_kw=_DAY)


class HeldSearch(Form):
    email = StringField("Address, or a part of it", render_kw=_TYPED)
    label = StringField("Label, or a part of it", render_kw=_TYPED)
    reference = StringField("Reference", render_kw=_TYPED)
    created_from = StringField("Issued from", render_kw=_DAY)
    created_to = StringField("Issued to", render_kw=_DAY)


class TransactionSearch(_SentSearch):
    email = StringField("Address, or a part of it", render_kw=_TYPED)
    label = StringField("Label, or a part of it", render_kw=_TYPED)
    reference = StringField("Reference", render_kw=_TYPED)
    state = _one_of("State", STATES)
    sender = SelectField("Sender")
    points = StringField("Points", render_kw=_TYPED)
    created_from = StringField("Issued from", render_kw=_DAY)
    created_to = StringField("Issued to", render_kw=_DAY)


# What is offered: all of a hundred, and the statuses that a caller meets.
_ANSWERS = (
    *("2xx", "4xx", "5xx"),
    *map(str, (200, 201, 202, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 503)),
)


class RequestSearch(Form):
    """A search by what programs have called; `keys` are the keys to choose from."""

    request_id = StringField("Request id", render_kw=_TYPED)
    batch = StringField("Batch", render_kw=_TYPED)
    status = _one_of("Status", _ANSWERS)
    api_key = SelectField("Key")
    created_from = StringField("Called from", render_kw=_DAY)
    created_to = StringField("Called to", render_kw=_DAY)

    def __init__(self, formdata: Any, keys: Iterable[StoredKey]) -> None:
        super().__init__(formdata)
        named = [SelectChoice(str(key.id), with_name(f"{key.id} ({key.start}…)", key.name)) for key in keys]
        self.api_key.choices = [_ANY, *named]
