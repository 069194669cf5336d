"""The body of a reversal and of its verify: parsed, with every fault in one answer."""

from collections.abc import Callable, Collection
from typing import Any

from app.api.requests.fields import read_atomic, shown_number, text_fault
from app.api.requests.json_object import is_integer, is_missing, kind, parse_object
from app.reversals.accept import ReverseRequest
from app.settings import INT64_MAX, Settings
from app.values.validation_errors import FaultsFound

FIELDS = ("batch", "transactions", "amount", "atomic", "reason")
REASON_LENGTH_MAX = 255

# Given ids, returns those that are not transactions of the caller's organization and mode.
Absent = Callable[[list[int]], Collection[int]]


def parse_reverse_request(body: bytes, settings: Settings, absent: Absent) -> ReverseRequest:
    """Read the body of a reversal or of its verify.

    Args:
        body: JSON in UTF-8.
        settings: for the limit of transactions.
        absent: tells which ids do not exist in the caller's organization and mode.

    Raises:
        InvalidRequest: with every fault, each under its field; a bad entry under its place, `transactions.3`.
    """
    fields, refusal = parse_object(body)
    faults = FaultsFound()
    faults.add_unknown("field", fields, FIELDS, whole="body")
    batch, transactions = fields.get("batch"), fields.get("transactions")
    if is_missing(batch) and is_missing(transactions):
        faults.add("batch", "The batch field is required when transactions is not present.")
        faults.add("transactions", "The transactions field is required when batch is not present.")
    elif not is_missing(batch) and not is_missing(transactions):
        for name, other in (("batch", "transactions"), ("transactions", "batch")):
            faults.add(name, f"Send either {name} or {other}, not both.")
    request = ReverseRequest(
        batch_id=_batch_id(batch, faults),
        transaction_ids=_transaction_ids(transactions, faults, settings, absent),
        amount=_amount(fields.get("amount"), faults),
        atomic=read_atomic(fields.get("atomic"), faults),
        reason=_reason(fields.get("reason"), faults),
    )
    faults.raise_if_any()
    if refusal is not None:
        raise refusal
    return request


def _batch_id(value: object, faults: FaultsFound) -> int | None:
    if is_missing(value):
        return None
    if not is_integer(value):
        faults.add("batch", f"The batch must be the id of a batch, an integer, but is {kind(value)}.")
        return None
    assert isinstance(value, int)
    if value < 1:
        faults.add("batch", "The batch must be the id of a batch, an integer of at least 1.")
    return value


def _transaction_ids(value: object, faults: FaultsFound, settings: Settings, absent: Absent) -> list[int] | None:
    if is_missing(value):
        return None
    if not isinstance(value, list):
        faults.add("transactions", f"The transactions must be an array of ids, but are {kind(value)}.")
        return None
    if len(value) > settings.recipients_max:
        faults.add(
            "transactions", f"There must be at most {settings.recipients_max} transactions, but there are {len(value)}."
        )
        return None
    known = [one for one in value if _is_id(one)]
    not_there = set(absent(known)) if known else set()
    places: dict[int, int] = {}
    for place, one in enumerate(value):
        if (sentence := _entry_fault(one, places, not_there)) is not None:
            faults.add_entry(f"transactions.{place}", sentence)
        elif _is_id(one):
            places[one] = place
    return known


def _is_id(value: Any) -> bool:
    return is_integer(value) and 1 <= value <= INT64_MAX


def _entry_fault(value: Any, places: dict[int, int], not_there: Collection[int]) -> str | None:
    if not is_integer(value):
        return f"The entry must be the id of a transaction, an integer, but is {kind(value)}."
    if value in places:
        return f"The entry is the same transaction as transactions.{places[value]}."
    if not _is_id(value) or value in not_there:
        return "There is no transaction with this id."
    return None


def _amount(value: object, faults: FaultsFound) -> int | None:
    if is_missing(value):
        return None
    if not is_integer(value):
        faults.add("amount", f"The amount must be an integer, but is {kind(value)}.")
        return None
    assert isinstance(value, int)
    if not 1 <= value <= INT64_MAX:
        faults.add("amount", f"The amount must be between 1 and {INT64_MAX} points, but is {shown_number(value)}.")
        return None
    return value


def _reason(value: object, faults: FaultsFound) -> str:
    sentence: str | None = "The reason field is required."
    if not is_missing(value):
        sentence = text_fault("reason", value, length_max=REASON_LENGTH_MAX)
    if sentence is not None:
        faults.add("reason", sentence)
        return ""
    assert isinstance(value, str)
    return value
