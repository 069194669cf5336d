"""The recipients of a list: the good addresses in parts, and the bad lines that are left out."""

import hashlib
import tempfile
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import IO, Any, NamedTuple

from app.errors import InvalidAddress
from app.recipient_files.cells import ORDINARY
from app.recipient_files.columns import BadCell, Columns, Item
from app.recipient_files.list_file import ListFile
from app.recipient_files.rows import Row

# Rows that are looked at together: most lists are long and plain.
_CHUNK_ROWS = 1_000
# Kept as they were, for a preview.
FIRST_ROWS = 8


class BadLine(NamedTuple):
    """A line that is left out, and why."""

    line: int
    email: str
    reason: str


class Part(NamedTuple):
    """The recipients of a batch, the line of each, and the bad lines between them."""

    number: int
    lines: list[int]
    items: list[Item]
    bad: list[BadLine]


class Recipients:
    """The result of a pass over a list.

    The good addresses are in an unnamed temporary file, so that later passes see exactly the same. Only the data that
    finds repeats is in memory: 16 bytes and a line number for each address and each reference.
    """

    def __init__(self, *, keeps_bad_rows: bool = False) -> None:
        self._keeps_bad_rows = keeps_bad_rows
        self.bad: list[BadLine] = []
        self.bad_rows: list[Row] = []  # Of the bad lines; only if they are kept.
        self.first_rows: list[Row] = []
        self.faulty: dict[int, str | None] = {}  # Of the first bad lines, which cell: `BadCell.use`.
        self.first: list[str] = []
        self.last: deque[str] = deque(maxlen=3)
        # The sum, the smallest and the largest of the lines' own amounts.
        self.own_points = 0
        self.own_range: tuple[int, int] | None = None
        self._lines = array("Q")
        self._new: list[tuple[int, Item, str]] = []  # Not yet in a part: the line, the item, its identity.
        self._line_of: dict[bytes, int] = {}
        self._line_of_reference: dict[bytes, int] = {}
        self._with_reference: set[bytes] = set()  # Addresses whose lines carry references.
        self._spool: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n")  # noqa: SIM115  # `close` is ours.
        self._fingerprint = hashlib.sha256()

    @property
    def count(self) -> int:
        return len(self._lines)

    def read(
        self, file: ListFile, columns: Columns, amount_max: int, size: int, advance_to: Callable[[int], None]
    ) -> Iterator[Part]:
        """Read the list. Yield each part of `size` recipients once it is read."""
        rows = file.rows(columns.address, *columns.own.values())
        while chunk := list(islice(rows, _CHUNK_ROWS)):
            advance_to(file.bytes_read)
            self.first_rows += chunk[: FIRST_ROWS - len(self.first_rows)]
            if not self._add_plain(chunk, columns):
                for row in chunk:
                    self._add(row, columns, amount_max=amount_max, is_unicode=file.is_unicode)
            while len(self._new) >= size:
                yield self._part(size)
        if self._new:
            yield self._part(size)

    def _add_plain(self, rows: Sequence[Row], columns: Columns) -> bool:
        """Add rows if all of them hold just a new address of the usual form; return whether they were added."""
        if columns.has_own or any(row.fault is not None for row in rows):
            return False
        emails = [row.cells[columns.address] for row in rows]
        if not all(map(ORDINARY.match, emails)):
            return False
        keys = "\n".join(emails).lower().split("\n")
        digests = list(map(digest, keys))
        if len(set(digests)) < len(rows) or not self._line_of.keys().isdisjoint(digests):
            return False
        lines = [row.line for row in rows]
        self._line_of.update(zip(digests, lines, strict=True))
        self._new += zip(lines, map(Item, emails), (f"{key}\n" for key in keys), strict=True)
        return True

    def _add(self, row: Row, columns: Columns, *, amount_max: int, is_unicode: bool) -> None:
        try:
            address, item = columns.read(row, amount_max=amount_max, is_unicode=is_unicode)
            self._require_no_repeat(row.line, address.key, item.reference)
        except (InvalidAddress, BadCell) as error:
            email = row.in_words if row.fault is not None else row.cells[columns.address].strip()
            self.bad.append(BadLine(row.line, email, error.sentence))
            if self._keeps_bad_rows:
                self.bad_rows.append(row)
            if len(self.bad) <= FIRST_ROWS:
                self.faulty[row.line] = error.use if isinstance(error, BadCell) else "address"
            return
        place = columns.unpaid_batch
        unpaid_batch = None if place is None else row.cells[place].strip()
        self._new.append((row.line, item, _identity(address.key, item, unpaid_batch)))

    def _part(self, size: int) -> Part:
        """Store the next recipients, up to `size`, and return them."""
        lines, items, identities = map(list, zip(*self._new[:size], strict=True))
        del self._new[:size]
        self._fingerprint.update("".join(identities).encode())
        self._lines.extend(lines)
        self._spool.writelines(map(_spooled, items))
        if amounts := [item.amount for item in items if item.amount is not None]:
            self.own_points += sum(amounts)
            known = [*amounts, *(self.own_range or ())]
            self.own_range = min(known), max(known)
        self.first += [item.email for item in items[: 3 - len(self.first)]]
        self.last.extend(item.email for item in items[-3:])
        return Part(number=-(-self.count // size), lines=lines, items=items, bad=[])

    def _require_no_repeat(self, line: int, key: str, reference: str | None) -> None:
        """Raise `BadCell` for a repeated reference, or for a repeated address unless each line has a reference."""
        address = digest(key)
        earlier, had_reference = self._line_of.get(address), address in self._with_reference
        if earlier is not None and not (had_reference and reference is not None):
            one_has = had_reference or reference is not None
            meant = ": if that is meant, give each of them a reference" if one_has else ""
            raise BadCell(f"is the same address as line {earlier}{meant}.", "address")
        if reference is not None:
            first = self._line_of_reference.setdefault(digest(reference), line)
            if first != line:
                raise BadCell(f"has the same reference as line {first}.", "reference")
            self._with_reference.add(address)
        self._line_of.setdefault(address, line)

    def holds(self, key: str, reference: str | None) -> bool:
        """Tell whether an address (its normalised form) or a reference is among the recipients."""
        return digest(key) in self._line_of or (reference is not None and digest(reference) in self._line_of_reference)

    def points(self, amount: int | None) -> int:
        """Return the points for all together; `amount` is for each that has none of its own."""
        return self.own_points + self.count * (amount or 0)

    def campaign(self, *, amount: int | None, label: str | None, again: str | None) -> str:
        """Return the campaign's id, 64 hexadecimal digits. A second run with the same id pays nobody again.

        It covers the addresses in order with their own references and labels, --amount, --label and --again. It leaves
        out `atomic` and the lines' own amounts: changing these must not make a paid list a new campaign.
        """
        digest = hashlib.sha256(self._fingerprint.digest())
        for name, value in {b"amount": amount, b"label": label, b"again": again}.items():
            written = b"" if value is None else str(value).encode()
            digest.update(b"%s %d %d:%s\n" % (name, value is not None, len(written), written))
        return digest.hexdigest()

    def parts(self, size: int) -> Iterator[Part]:
        """Yield all recipients in order, `size` to a part; the last part has the rest."""
        self._spool.seek(0)
        bad_before = 0
        for number, start in enumerate(range(0, self.count, size), 1):
            end = start + size
            bad_end = len(self.bad)
            if end < self.count:
                bad_end = bisect_left(self.bad, self._lines[end], key=lambda bad: bad.line)
            yield Part(
                number=number,
                lines=self._lines[start:end].tolist(),
                items=[_item(row[:-1]) for row in islice(self._spool, size)],
                bad=self.bad[bad_before:bad_end],
            )
            bad_before = bad_end

    def close(self) -> None:
        self._spool.close()


def body_of(items: Sequence[Item], *, amount: int | None, label: str | None, atomic: bool) -> dict[str, Any]:
    """Return the body that sends to these; with `items` only if any has its own values."""
    is_plain = all(item.is_plain for item in items)
    recipients = {"recipients": [i.email for i in items]} if is_plain else {"items": [i.body for i in items]}
    points = sum((amount if item.amount is None else item.amount) or 0 for item in items)
    both = {"amount": amount, "label": label}
    return {
        **recipients,
        **{name: value for name, value in both.items() if value is not None},
        "atomic": atomic,
        "expect": {"recipients": len(items), "amount": points},
    }


def digest(*texts: str) -> bytes:
    """Return 16 bytes that identify these texts. None of them may hold a NUL."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).digest()


def _identity(key: str, item: Item, unpaid_batch: str | None) -> str:
    """Return what distinguishes a recipient in a campaign, with the lengths of texts that may hold anything."""
    identity = key if unpaid_batch is None else f"{key}\t{unpaid_batch}"
    for name, text in (("reference", item.reference), ("label", item.label)):
        if text is not None:
            identity += f"\t{name} {len(text.encode())}:{text}"
    return f"{identity}\n"


def _spooled(item: Item) -> str:
    if item.is_plain:
        return f"{item.email}\n"
    return f"{item.email}\t{item.amount or ''}\t{item.reference or ''}\t{item.label or ''}\n"


def _item(row: str) -> Item:
    email, *own = row.split("\t")
    if not own:
        return Item(email)
    amount, reference, label = own
    return Item(email, int(amount) if amount else None, reference or None, label or None)
