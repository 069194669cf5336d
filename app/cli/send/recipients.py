"""The recipients of a list: the good addresses in parts, and the bad lines that are left out."""

import hashlib
import tempfile
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, NamedTuple

from app.errors import InvalidAddress
from app.lists import ListFile, address_in
from app.values.addresses import Address

# The column in a list of unpaid recipients that makes it another campaign than the first.
UNPAID_BATCH = "unpaid_batch_id"


class BadLine(NamedTuple):
    """A line that is left out, and why."""

    line: int
    email: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """The recipients of one batch, the line of each, and the bad lines between them."""

    number: int
    lines: list[int]
    emails: list[str]
    bad: list[BadLine]


class Recipients:
    """The result of one pass over a list.

    The good addresses are in an unnamed temporary file, so that later passes see exactly the same. Only the data that
    finds repeats is in memory: 16 bytes and a line number for each address.
    """

    def __init__(self) -> None:
        self.bad: list[BadLine] = []
        self.first: list[str] = []
        self.last: deque[str] = deque(maxlen=3)
        self._lines = array("Q")
        self._line_of: dict[bytes, int] = {}
        self._spool: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n")  # noqa: SIM115  # `close` is ours.
        self._fingerprint = hashlib.sha256()

    @property
    def count(self) -> int:
        return len(self._lines)

    def read(self, file: ListFile, column: int, size: int, advance_to: Callable[[int], None]) -> Iterator[Part]:
        """Read the list; `column` (from 0) has the addresses. Yield each part of `size` recipients once it is read."""
        unpaid = file.places([UNPAID_BATCH])
        emails: list[str] = []
        for row in file.rows(column):
            try:
                if row.fault is not None:
                    raise InvalidAddress(row.fault)
                address = address_in(row.cells[column], is_unicode=file.is_unicode)
                self._add(row.line, address, row.cells[unpaid[0]].strip() if unpaid else None)
                emails.append(address.text)
            except InvalidAddress as error:
                email = row.shown if row.fault is not None else row.cells[column].strip()
                self.bad.append(BadLine(row.line, email, error.sentence))
            if row.line % 1_000 == 0:
                advance_to(file.bytes_read)
            if len(emails) == size:
                yield self._last_part(emails)
                emails = []
        if emails:
            yield self._last_part(emails)

    def _last_part(self, emails: list[str]) -> Part:
        number = -(-self.count // len(emails))
        return Part(number=number, lines=self._lines[-len(emails) :].tolist(), emails=emails, bad=[])

    def _add(self, line: int, address: Address, unpaid_batch: str | None) -> None:
        key = address.key.encode()
        earlier = self._line_of.setdefault(_digest(key), line)
        if earlier != line:
            raise InvalidAddress(f"is the same address as line {earlier}.")
        self._fingerprint.update(key + b"\n" if unpaid_batch is None else b"%s\t%s\n" % (key, unpaid_batch.encode()))
        self._lines.append(line)
        self._spool.write(f"{address.text}\n")
        if len(self.first) < 3:
            self.first.append(address.text)
        self.last.append(address.text)

    def holds(self, key: str) -> bool:
        """Tell whether an address (its normalised form) is among the recipients."""
        return _digest(key.encode()) in self._line_of

    def campaign(self, *, amount: int, label: str | None, again: str | None) -> str:
        """Return the campaign's id, 64 hexadecimal digits: a second run with the same id pays nobody again.

        It covers the addresses in order, amount, label and --again. It leaves out `atomic`: changing that must not make
        a paid list a new campaign.
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
                emails=[email[:-1] for email in islice(self._spool, size)],
                bad=self.bad[bad_before:bad_end],
            )
            bad_before = bad_end

    def close(self) -> None:
        self._spool.close()


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=16).digest()
