"""The requests of a run, and the rows of the result file: the outcome of each line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import merge
from typing import Any

from app.recipient_files.cells import for_spreadsheet, marked_as_text, unmarked
from app.recipient_files.columns import CONTROL, Item
from app.recipient_files.recipients import BadLine
from app.values.addresses import ERASED
from app.values.timestamps import timestamp
from points_client import Sent, Transaction

COLUMNS = (
    *("line", "email", "transaction_id", "amount", "debited", "credited", "held", "batch_id", "reason"),
    *("label", "sandbox", "organization_id", "created_at", "idempotency_key", "again", "reference", "check"),
)
_TOO_LOW, _ERASED = "the balance was too low", "the user was erased"
# By (debited, credited): the columns debited, credited and held, and the reason.
_FLAGS = {(True, True): ("yes,yes,no", ""), (True, False): ("yes,no,yes", ""), (False, False): ("no,no,no", _TOO_LOW)}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One batch to send: its key and body, and the lines of the list that it covers."""

    key: str
    body: Mapping[str, Any]
    lines: Sequence[int]
    bad: Sequence[BadLine]
    again: str | None
    organization_id: int
    sandbox: bool
    announced_at: str

    @property
    def identity(self) -> str:
        """The request's unique name, because an idempotency key is unique in an organization and mode."""
        return f"{self.organization_id} {word(self.sandbox)} {self.key}"

    @property
    def items(self) -> Sequence[Item]:
        """The items of the body, in order, each with its own values."""
        if "items" in self.body:
            return [Item(**item) for item in self.body["items"]]
        return [Item(email) for email in self.body["recipients"]]

    def rows(self, issued: Sent) -> list[str]:
        """Return the outcome of each line, in the order of the list, without the last column (the check)."""
        label_of_all, again = _cell(self.body.get("label") or ""), _cell(self.again or "")
        payer = f"{word(self.sandbox)},{self.organization_id}"
        time_cell = cache(timestamp)  # All transactions of a batch have the same time.
        rows = []
        for line, item, transaction in zip(self.lines, self.items, issued.transactions, strict=True):
            flags, reason = _FLAGS[transaction.debited, transaction.credited]
            reason = _ERASED if was_erased(transaction) else reason
            label = label_of_all if item.label is None else _cell(item.label)
            reference = "" if item.reference is None else _quoted(marked_as_text(item.reference))
            rows.append(
                f"{line},{for_spreadsheet(item.email)},{transaction.id},{transaction.amount},{flags},{issued.batch_id},{reason},"
                f"{label},{payer},{time_cell(transaction.created_at)},{self.key},{again},{reference}"
            )
        if not self.bad:
            return rows
        bad = [f"{bad.line},{_cell(bad.email)},,,,,,,{_cell(bad.reason)},,,,,,," for bad in self.bad]
        return list(merge(rows, bad, key=lambda row: int(row.partition(",")[0])))


def was_erased(transaction: Transaction) -> bool:
    """Tell whether a recipient was erased before the issue, and so is unpaid whatever the balance was."""
    return not transaction.debited and ERASED.fullmatch(transaction.email) is not None


def identity_of(row: Mapping[str, str]) -> str:
    """Return the identity of the request that a row belongs to."""
    return f"{row['organization_id']} {row['sandbox']} {row['idempotency_key']}"


def address_of(row: Mapping[str, str]) -> str:
    """Return the address of a row without the apostrophe of `text_of`; no address begins with an apostrophe."""
    return row["email"].removeprefix("'")


def reference_of(row: Mapping[str, str]) -> str | None:
    """Return the reference of a row; None if it has none."""
    return unmarked(row["reference"]) or None


def text_of(text: str) -> str:
    """Return a text as the result file has it: on a single line, and never a spreadsheet's formula."""
    return for_spreadsheet(CONTROL.sub(" ", text))


def word(value: bool) -> str:
    return "yes" if value else "no"


def _cell(text: str) -> str:
    return _quoted(text_of(text))


def _quoted(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""')) if '"' in text or "," in text else text
