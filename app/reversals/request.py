"""A request to take points back: what it holds, and how it is read from a mapping, with every fault in one answer."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.fields.field import Table, is_integer, is_missing, kind
from app.fields.kinds import ID, Array, Boolean, Integer, Text
from app.settings import INT64_MAX, Settings

REASON_LENGTH_MAX = 255

BATCH = Integer(
    "batch",
    "The id of the batch.",
    1,
    minimum=1,
    form="the id of a batch, an integer",
    bounds="the id of a batch, an integer of at least 1",
)
TRANSACTIONS = Array("transactions", "Ids of transactions, each once.", of="ids", entries=ID, is_unique=lambda _: True)
AMOUNT = Integer(
    "amount",
    "Points to take from **each** transaction. By default all that are left.",
    None,
    minimum=1,
    maximum=INT64_MAX,
    unit="points",
)
ATOMIC = Boolean("atomic", "True: take all or nothing.", False, default=False)
REASON = Text(
    "reason",
    "Why the points are taken back; kept with the reversal.",
    "The wrong list",
    length_max=REASON_LENGTH_MAX,
    is_required=True,
)
REVERSE = Table(
    "ReverseRequest",
    'Points to take back: of a `batch` or of `transactions`. Null, `""` and `[]` count as missing. A field that is not'
    " listed is a fault.",
    *(BATCH, TRANSACTIONS, AMOUNT, ATOMIC, REASON),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReverseRequest:
    """A valid request to take points back: from a batch, or from transactions in this order.

    `amount` is what to take from each; None: all that is left of it.
    """

    batch_id: int | None
    transaction_ids: Sequence[int] | None
    amount: int | None
    atomic: bool
    reason: str

    def meaning(self) -> bytes:
        """Return 32 bytes that are equal for two requests that mean the same, even if they are written differently."""
        parts = (self.batch_id, self.transaction_ids, self.amount, self.atomic, self.reason)
        return hashlib.sha256(orjson.dumps(parts)).digest()


class ReverseReading:
    """The fields of a reversal or of its verify, read in two steps: their form first, then whether the ids exist.

    `ids` are the transactions of a valid form; whoever reads looks them up between the steps.
    """

    def __init__(self, fields: Mapping[str, Any], limits: Settings) -> None:
        self._faults = REVERSE.new_faults(fields)
        self._require_one(fields)
        self._batch_id = BATCH.read(fields, self._faults, limits)
        self._entries = TRANSACTIONS.read(fields, self._faults, limits) or []
        if self._entries and len(self._entries) < len(fields["transactions"]):
            self._entries = []  # Of too many, none is looked up.
        self._amount = AMOUNT.read(fields, self._faults, limits)
        self._atomic = ATOMIC.read(fields, self._faults, limits)
        self._reason = REASON.read(fields, self._faults, limits)
        self.ids = [entry for entry in self._entries if _is_id(entry)]

    def _require_one(self, fields: Mapping[str, Any]) -> None:
        sent = [name for name in (BATCH.name, TRANSACTIONS.name) if not is_missing(fields.get(name))]
        for name, other in ((BATCH.name, TRANSACTIONS.name), (TRANSACTIONS.name, BATCH.name)):
            if not sent:
                self._faults.add(name, f"The {name} field is required when {other} is not present.")
            elif len(sent) == 2:
                self._faults.add(name, f"Send either {name} or {other}, not both.")

    def request(self, absent: Collection[int] = ()) -> ReverseRequest:
        """Return the request.

        Args:
            absent: those of `ids` that are not transactions of the caller's organization and mode.

        Raises:
            InvalidRequest: with every fault, each under its field; a bad entry under its place, `transactions.3`.
        """
        places: dict[int, int] = {}
        for place, entry in enumerate(self._entries):
            if (sentence := _entry_fault(entry, places, absent)) is not None:
                self._faults.add_entry(f"transactions.{place}", sentence)
            elif _is_id(entry):
                places[entry] = place
        self._faults.raise_if_any()
        return ReverseRequest(
            batch_id=self._batch_id,
            transaction_ids=self.ids or None,
            amount=self._amount,
            atomic=bool(self._atomic),
            reason=self._reason or "",
        )


def _is_id(value: Any) -> bool:
    return is_integer(value) and 1 <= value <= INT64_MAX


def _entry_fault(value: Any, places: Mapping[int, int], absent: Collection[int]) -> str | None:
    if not is_integer(value):
        return f"The entry must be the id of a transaction, an integer, but is {kind(value)}."
    if value in places:
        return f"The entry is the same transaction as transactions.{places[value]}."
    if not _is_id(value) or value in absent:
        return "There is no transaction with this id."
    return None
