"""The result file, `FILE.result.csv`: the outcome of each line, appended part by part, never changed.

Each row ends with a checksum of its part (the rows of a batch) and all parts before, which shows when another program
has saved the file. Each request is also noted in a separate file beside it, from before it is sent until its rows are
written.
"""

import csv
import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import IO, Any

import orjson

from app.cli.send.result_rows import COLUMNS, Request, address_of, identity_of
from app.errors import Refused
from app.recipient_files.columns import UNPAID_BATCH
from app.recipient_files.recipients import BadLine
from points_client import Sent

_SENDING = ".sending-"
_HEADING = ",".join(COLUMNS).encode() + b"\r\n"


class ResultFile:
    """The result file of a list; `unanswered` are the requests without rows, oldest first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unanswered: list[Request] = []
        self._answered: dict[str, str] = {}  # The batch of each request that has rows.
        # Where the rows with a right check end, and the last check.
        self._end = 0
        self._check = ""

    def rows(self) -> Iterator[Mapping[str, str]]:
        """Yield all rows of recipients, with texts as `text_of` writes them.

        Raises:
            Refused: the file was changed by another program.
        """
        self._end, self._check, self._answered, checks = 0, "", {}, {""}
        for lines in self._checked_parts():
            checks.add(self._check)
            for cells in csv.reader(line.decode() for line in lines):
                if len(cells) != len(COLUMNS):
                    raise self._changed_by_others()
                row = dict(zip(COLUMNS, cells, strict=True))
                if row["idempotency_key"]:
                    self._answered[identity_of(row)] = row["batch_id"]
                    yield row
        self._find_unanswered(checks)
        # Only a killed run may leave an incomplete part at the end; `write` checks and completes it.
        if self.path.exists() and not self.unanswered and self.path.stat().st_size != (self._end or -1):
            raise self._changed_by_others()

    def _checked_parts(self) -> Iterator[list[bytes]]:
        """Yield the lines of each part, up to the first part with a wrong check, and note where it ends."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            if file.readline() != _HEADING:
                return
            end = len(_HEADING)
            for written, group in groupby(file, lambda line: line.rpartition(b",")[2]):
                lines = list(group)
                check = _next_check(self._check, b"\n".join(line.rpartition(b",")[0] for line in lines))
                if written != f"{check}\r\n".encode():
                    return
                end += sum(map(len, lines))
                self._end, self._check = end, check
                yield lines

    def announce(self, request: Request) -> None:
        """Write a request to the disk before it is sent."""
        path = self.path_of(request)
        draft = path.with_name(f"{path.name}.draft")
        with draft.open("wb") as file:
            file.write(orjson.dumps({"after": self._check, **vars(request)}, default=list))
            _sync(file)
        draft.replace(path)
        _sync_folder(path.parent)
        self.unanswered.append(request)

    def withdraw(self, request: Request) -> None:
        """Remove an announced request: it was refused, or its rows are written."""
        self.path_of(request).unlink(missing_ok=True)
        self.unanswered = [other for other in self.unanswered if other.identity != request.identity]

    def write(self, request: Request, issued: Sent) -> None:
        """Append the rows of a request and flush them to the disk, unless they are there.

        Raises:
            Refused: the file has other data in the place of these rows.
        """
        if self._answered.get(request.identity) != str(issued.batch_id):
            lines = request.rows(issued)
            check = _next_check(self._check, "\n".join(lines).encode())
            rows = "".join(f"{line},{check}\r\n" for line in lines)
            self._append(rows.encode() if self._end else _HEADING + rows.encode())
            self._answered[request.identity] = str(issued.batch_id)
            self._check = check
        self.withdraw(request)

    def write_unpaid(self, campaign: str, own: Sequence[str], erased: Collection[str]) -> Path:
        """Write the campaign's unpaid recipients, with the columns of `own`, into a list that can be sent later.

        The list's column of batch ids makes it another campaign: under this campaign's keys they would stay unpaid.
        The transactions `erased` are left out: that list would pay an address that was erased.
        """
        stem = re.sub(r"(\.result)?\.csv$", "", self.path.name)
        again = re.fullmatch(r"(.*)\.undebited(?:-([0-9]+))?", stem)
        stem, number = (stem, 1) if again is None else (again[1], int(again[2] or 1) + 1)
        batch_ids = {batch_id for identity, batch_id in self._answered.items() if f"-{campaign}-" in identity}
        names = (f"{stem}.undebited{'' if nth == 1 else f'-{nth}'}.csv" for nth in count(number))
        target = next(path for path in map(self.path.with_name, names) if _may_hold(path, batch_ids))
        draft = target.with_name(f"{target.name}.draft")
        with draft.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("email", "line", UNPAID_BATCH, *own))
            for row in self.rows():
                is_unpaid = row["debited"] == "no" and row["transaction_id"] not in erased
                if is_unpaid and f"-{campaign}-" in row["idempotency_key"]:
                    rows.writerow((address_of(row), row["line"], row["batch_id"], *map(row.__getitem__, own)))
        draft.replace(target)
        return target

    def _find_unanswered(self, checks: Collection[str]) -> None:
        """Read the requests without rows; `after` is the last check at the time of the announcement."""
        self.unanswered = []
        for path in self.path.parent.glob(f"*{_SENDING}*"):
            if re.fullmatch(rf"{re.escape(self.path.name + _SENDING)}[0-9a-f]+", path.name):
                document = orjson.loads(path.read_bytes())
                if document.pop("after") not in checks:
                    raise self._changed_by_others()
                request = Request(**document | {"bad": [BadLine(*bad) for bad in document["bad"]]})
                self.unanswered.append(request)
                if request.identity in self._answered:
                    self.withdraw(request)
        self.unanswered.sort(key=lambda request: request.announced_at)

    def _append(self, rows: bytes) -> None:
        with self.path.open("r+b" if self.path.exists() else "x+b") as file:
            file.seek(self._end)
            if not rows.startswith(begun := file.read(len(rows) + 1)):
                raise self._changed_by_others()
            file.write(rows[len(begun) :])
            _sync(file)
        if not self._end:
            _sync_folder(self.path.parent)
        self._end += len(rows)

    def path_of(self, request: Request) -> Path:
        name = hashlib.sha256(request.identity.encode()).hexdigest()[:16]
        return self.path.with_name(f"{self.path.name}{_SENDING}{name}")

    def _changed_by_others(self) -> Refused:
        return Refused(
            f"{self.path} is not as `points send` has written it, so it cannot tell who was paid: another program may"
            " have saved it. Restore it; or, if nobody in the list was paid before, move it away."
        )


def _may_hold(path: Path, batch_ids: Collection[str]) -> bool:
    """Tell whether the unpaid recipients of these batches may be written there: others may still have to be sent."""
    if not path.exists():
        return True
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return next(csv.DictReader(file), {}).get(UNPAID_BATCH) in batch_ids


def _next_check(before: str, rows: bytes) -> str:
    return hashlib.blake2b(before.encode() + rows, digest_size=8).hexdigest()


def _sync(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Flush a folder, so that a new file's name is on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
