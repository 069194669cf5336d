"""The recipients of a file: which column they stand in, which lines are bad, and the parts they are sent in."""

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, NamedTuple, Self

from app.addresses import Address, parse
from app.cli.csv_file import CsvFile
from app.cli.send.column import Column
from app.errors import InvalidAddress


class BadLine(NamedTuple):
    line: int
    email: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """Recipients of one batch: `lines` are their lines in the file, at the same places; `number` counts from 1."""

    number: int
    lines: Sequence[int]
    emails: Sequence[str]


class Recipients:
    """What one pass over a file has found.

    The good addresses lie in a temporary file that has no name, so that the later passes see just
    what this one saw, whatever becomes of the original. In memory is only what finds repeats: 16
    bytes and a line number for each address.
    """

    def __init__(self) -> None:
        self.count = 0
        self.bad: list[BadLine] = []
        self._lines_by_digest: dict[bytes, int] = {}
        self._spool: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n")  # noqa: SIM115  # `close` is ours.
        self._fingerprint = hashlib.sha256()

    @classmethod
    def read(cls, file: CsvFile, column: Column, advance_to: Callable[[int], None]) -> Self:
        """Read a file once from start to end."""
        found = cls()
        for row in islice(file.rows(), 1 if column.has_heading else 0, None):
            email = row.cells[column.place] if column.place < len(row.cells) else ""
            found.add(row.line, email, row.fault)
            if found.count % 1_000 == 0:
                advance_to(file.bytes_read)
        return found

    def close(self) -> None:
        self._spool.close()

    @property
    def fingerprint(self) -> bytes:
        """Return 32 bytes that are equal for two files with the same addresses in the same order.

        Another column, another delimiter or a bad line taken away make no other file of it.
        """
        return self._fingerprint.digest()

    def line_of(self, address: Address) -> int | None:
        """Return the line that an address stands in, or None."""
        return self._lines_by_digest.get(_digest(address))

    def parts(self, size: int) -> Iterator[Part]:
        """Yield all recipients in order, `size` to a part and the rest in the last."""
        self._spool.seek(0)
        number = 0
        while entries := list(islice(self._spool, size)):
            number += 1
            lines, emails = zip(*(entry[:-1].split("\t") for entry in entries), strict=True)
            yield Part(number=number, lines=[int(line) for line in lines], emails=emails)

    def add(self, line: int, email: str, fault: str | None = None) -> None:
        """Take a line as a recipient, or as a bad line if it has a fault, is no address, or repeats one."""
        try:
            if fault is not None:
                raise InvalidAddress(fault)
            address = parse(email)
        except InvalidAddress as error:
            self.bad.append(BadLine(line, email, error.sentence))
            return
        earlier = self._lines_by_digest.setdefault(_digest(address), line)
        if earlier != line:
            self.bad.append(BadLine(line, email, f"is the same address as line {earlier}."))
            return
        self.count += 1
        self._fingerprint.update(address.key.encode() + b"\n")
        self._spool.write(f"{line}\t{address.text}\n")


def campaign(fingerprint: bytes, *, amount: int, label: str | None, again: str | None) -> str:
    """Return the name that two runs share when the second must not pay again: 64 hexadecimal digits.

    `again` is what tells a deliberate repetition from one that would pay twice. Whether a batch is
    atomic is not in it: changing that must not make a new campaign of one that was paid.
    """
    parts: Mapping[bytes, object] = {b"amount": amount, b"label": label, b"again": again}
    digest = hashlib.sha256(fingerprint)
    for name, value in parts.items():
        written = b"" if value is None else str(value).encode()
        digest.update(b"%s %d %d:%s\n" % (name, value is not None, len(written), written))
    return digest.hexdigest()


def idempotency_key(campaign_name: str, part: int) -> str:
    """Return the key under which a part is sent, by whichever run."""
    return f"points-send-{campaign_name}-{part}"


def is_idempotency_key(text: str) -> bool:
    """Tell whether a text is such a key, of whichever campaign."""
    return re.fullmatch(r"points-send-[0-9a-f]{64}-[0-9]+", text) is not None


def _digest(address: Address) -> bytes:
    return hashlib.blake2b(address.key.encode(), digest_size=16).digest()
