"""What an earlier run of a file has written down, so that the next one neither pays twice nor asks in vain."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.addresses import parse
from app.cli.csv_file import SAMPLE_BYTES, delimiter_of
from app.cli.send.recipients import Recipients, is_idempotency_key
from app.errors import InvalidAddress, Refused

# The service keeps an idempotency key for 30 days at least. After that it no longer knows what it has paid.
_REMEMBERED = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class Intent:
    """What a run is about to pay: its campaign, and what the rows of a payment like it would say.

    `again` is the name of a deliberate repetition, None for the first time.
    """

    campaign: str
    amount: int
    label: str | None
    sandbox: bool
    organization_id: int
    again: str | None = None

    def is_payer_of(self, row: Mapping[str, str]) -> bool:
        """Tell whether a row of a result is of the same organization and mode: the sandbox has paid nobody."""
        payer = (str(self.organization_id), "yes" if self.sandbox else "no")
        return (row.get("organization_id"), row.get("sandbox")) == payer

    def is_of(self, row: Mapping[str, str]) -> bool:
        """Tell whether a row of a result says what became of a line of this very campaign."""
        return f"-{self.campaign}-" in row.get("idempotency_key", "") and self.is_payer_of(row)

    def may_have_paid(self, row: Mapping[str, str]) -> bool:
        """Tell whether a row of another campaign may be a payment like this one, which would then be made twice.

        A deliberate repetition is like others of its name only.
        """
        is_alike = (row.get("amount"), row.get("label")) == (str(self.amount), self.label or "")
        is_repetition = self.again is None or row.get("again") == self.again
        is_paid = row["debited"] == "yes" or not is_answered(row)
        return self.is_payer_of(row) and is_alike and is_repetition and is_paid


def is_answered(row: Mapping[str, str]) -> bool:
    """Tell whether a row of a line that was sent says what became of it."""
    return bool(row.get("transaction_id"))


@dataclass(kw_only=True)
class Earlier:
    """Of the same campaign: recipients settled, and when the first of all was sent. Of another: recipients paid alike.

    Paid alike may also be who was sent points and of whom no answer tells what became.
    """

    settled: int = 0
    sent_at: datetime | None = None
    paid_otherwise: int = 0


def read_earlier(paths: Iterable[Path], intent: Intent, recipients: Recipients) -> Earlier:
    """Read the result files that there are. One that is no result file of ours says nothing."""
    found = [_read(path, intent, recipients) for path in paths]
    # A run that was killed may have begun to write down once more what the one before it had.
    return max(found, key=lambda each: (each.paid_otherwise, each.settled), default=Earlier())


def read_rows(path: Path) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a result file, also of one that a spreadsheet has saved; nothing when there is none."""
    if path.is_file():
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            delimiter = delimiter_of(file.read(SAMPLE_BYTES))  # A spreadsheet saves what its country is used to.
            file.seek(0)
            yield from csv.DictReader(file, restval="", delimiter=delimiter)


def holds_another(path: Path, intent: Intent) -> bool:
    """Tell whether a result file says what became of another campaign: it is the only one that does."""
    rows = read_rows(path)
    return any(is_idempotency_key(row.get("idempotency_key", "")) and not intent.is_of(row) for row in rows)


class KnownRows:
    """What earlier result files say of lines of the same campaign, asked for in the order of the lines."""

    def __init__(self, paths: Iterable[Path], intent: Intent) -> None:
        self._files = [_RowsByLine(path, intent) for path in paths]

    def row(self, line: int, email: str) -> Sequence[str] | None:
        found = [file.row(line, email) for file in self._files]
        return next((row for row in found if row is not None), None)


class _RowsByLine:
    """One of these files. A line that was asked for is behind us."""

    def __init__(self, path: Path, intent: Intent) -> None:
        self._rows = (row for row in read_rows(path) if intent.is_of(row))
        self._next = next(self._rows, None)

    def row(self, line: int, email: str) -> Sequence[str] | None:
        while self._next is not None and int(self._next["line"]) < line:
            self._next = next(self._rows, None)
        found = self._next
        is_this = found is not None and (found["line"], found["email"]) == (str(line), email)
        return list(found.values()) if found is not None and is_this else None


def _read(path: Path, intent: Intent, recipients: Recipients) -> Earlier:
    """Read one result file.

    Raises:
        Refused: another program has saved it in a form of its own, so that it cannot tell who was paid when.
    """
    found = Earlier()
    for row in read_rows(path):
        try:
            _add(found, row, intent, recipients)
        except (ValueError, TypeError, KeyError):
            raise Refused(
                f"{path.name} was changed by another program, and what it says of line {row.get('line')} cannot be"
                " read any more. Restore a copy of it, or choose another --result FILE."
            ) from None
    return found


def _add(found: Earlier, row: Mapping[str, str], intent: Intent, recipients: Recipients) -> None:
    if not is_idempotency_key(row.get("idempotency_key", "")):
        return  # Of a bad line, or of one that was not sent; or the last row of a run that could not write all of it.
    if intent.is_of(row):
        int(row["line"])  # By which the row will be found again.
        sent_at = datetime.fromisoformat(row["created_at"]).astimezone(UTC)
        found.settled += is_answered(row)
        # The first: each part is remembered from when it was sent itself, and a run may have been carried on for weeks.
        found.sent_at = min(sent_at, found.sent_at or sent_at)
    elif intent.may_have_paid(row):
        found.paid_otherwise += _is_among(recipients, row.get("email", ""))


def _is_among(recipients: Recipients, email: str) -> bool:
    try:
        return recipients.line_of(parse(email)) is not None
    except InvalidAddress:
        return False


def require_no_second_payment(found: Earlier, intent: Intent, *, name: str, result: Path) -> None:
    """Stop a run that would pay somebody twice without the service being able to notice.

    Raises:
        Refused: the file was changed since it was sent, or was sent too long ago.
    """
    way_out = f"name a new campaign with {'--again NAME' if intent.again is None else 'another --again NAME'}"
    if found.sent_at is not None and datetime.now(UTC) - found.sent_at > _REMEMBERED:
        raise Refused(
            f"{name} was sent on {found.sent_at:%Y-%m-%d}, and the service remembers that for 30 days only: it would"
            f" pay again. If that is what you want, {way_out}."
        )
    if found.paid_otherwise:
        raise Refused(
            f"{name} has changed since {result.name} was written, and {found.paid_otherwise} of its recipients were"
            " paid then with this amount and label: they would be paid again. Send the new lines from their own file;"
            f" or, to pay everybody, {way_out}."
        )
