"""`FILE.result.csv`: what became of each line, in the order of the file, ready to be looked up or read by a program."""

import csv
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

from app.cli.send.earlier import Intent, KnownRows, holds_another, read_rows
from app.cli.send.numbered import Numbered
from app.cli.send.recipients import BadLine, Part, idempotency_key
from app.cli.send.service import Issued
from app.errors import Refused

COLUMNS = (
    "line",
    "email",
    "transaction_id",
    "amount",
    "debited",
    "credited",
    "held",
    "batch_id",
    "reason",
    "label",
    "sandbox",
    "organization_id",
    "created_at",
    "idempotency_key",
    "again",
)
TOO_LOW = "the balance was too low"
NOT_SENT = "not sent yet"
NOT_ANSWERED = "sent, but not answered"


class ResultFile:
    """The result file of one run. It is written under another name and renamed when the run ends, however it ends.

    Only a run that is killed leaves the other name behind. The next one keeps a copy of what it says until that stands
    in the result: it may itself end before it has come so far.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.draft = path.with_name(f"{path.name}.unfinished")
        # What killed runs have left behind, and the results of other campaigns that had this name before.
        self.left = Numbered(self.draft, suffix="")
        self.kept = Numbered(path)
        self._bad: Iterator[BadLine] = iter(())
        self._next_bad: BadLine | None = None

    def __enter__(self) -> Self:
        if self.path.is_dir():
            raise Refused(f"{self.path} is a folder. Choose another --result FILE.")
        try:
            self._file: IO[str] = self.draft.open("a+", encoding="utf-8", errors="surrogateescape", newline="")
        except OSError as error:
            raise Refused(f"{self.draft} cannot be written: {error.strerror}. Choose another --result FILE.") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # What was opened may have been given its name in this moment, by the run that ended.
            if not self.draft.exists() or not os.path.samestat(os.fstat(self._file.fileno()), self.draft.stat()):
                raise BlockingIOError
        except BlockingIOError:
            self._file.close()
            raise Refused("Another run sends this file at this moment; wait until it has ended.") from None
        self._rows = csv.writer(self._file)
        return self

    def begin(self, bad: Iterable[BadLine]) -> None:
        """Start the file anew; the bad lines are put where they belong among the others."""
        if os.fstat(self._file.fileno()).st_size:
            shutil.copyfile(self.draft, self.left.first_free())
        self._file.truncate(0)
        self._rows.writerow(COLUMNS)
        self._bad = iter(bad)
        self._next_bad = next(self._bad, None)

    def write(self, part: Part, issued: Issued, intent: Intent) -> None:
        """Write what became of a part, out to the disk."""
        for line, transaction in zip(part.lines, issued.transactions, strict=True):
            self._write_bad(before=line)
            self._rows.writerow(_cells(line, transaction, issued.batch_id, part, intent))
        self._file.flush()

    def finish(self, unsettled: Iterable[Part], intent: Intent, *, unanswered: int | None) -> None:
        """Write the lines of which nothing is known, and the bad ones among and after them, and give the file its name.

        What an earlier run has written of such a line, of the same campaign, is kept. `unanswered` is the number of
        the part that was sent all the same.
        """
        left = list(self.left.existing())
        known = KnownRows((self.path, *left), intent)
        for part in unsettled:
            for line, email in zip(part.lines, part.emails, strict=True):
                self._write_bad(before=line)
                unknown = _unanswered(line, email, part, intent) if part.number == unanswered else None
                self._rows.writerow(known.row(line, email) or unknown or _blank(line, email, NOT_SENT))
        self._write_bad(before=None)
        self._file.flush()
        for earlier in (*left, self.path):
            if holds_another(earlier, intent):
                earlier.rename(self.kept.first_free())
                if earlier == self.path:
                    self._keep_undebited()
        self.draft.replace(self.path)
        for earlier in left:
            earlier.unlink(missing_ok=True)

    def earlier(self) -> Iterable[Path]:
        """Return where earlier runs may have written something down, whether or not there is such a file."""
        return (self.path, self.draft, *self.left.existing(), *self.kept.existing())

    def _keep_undebited(self) -> None:
        """Keep whom the balance did not pay in that other campaign: its person was told to send this file later."""
        undebited = _undebited_of(self.path)
        if undebited.is_file():
            undebited.rename(Numbered(undebited).first_free())

    def __exit__(self, *_: object) -> None:
        # Nothing of this run is in it unless it was begun: an empty one is no result.
        if self.draft.exists() and self.draft.stat().st_size == 0:
            self.draft.unlink()
        with suppress(OSError):  # What could not be written before, and was told then.
            self._file.close()

    def _write_bad(self, *, before: int | None) -> None:
        while self._next_bad is not None and (before is None or self._next_bad.line < before):
            self._rows.writerow(_blank(*self._next_bad))
            self._next_bad = next(self._bad, None)


def write_undebited(result: Path) -> Path:
    """Write the recipients of a result file that the balance did not pay into a file that can be sent later."""
    target = _undebited_of(result)
    draft = target.with_name(f"{target.name}.unfinished")
    with draft.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("email", "line"))
        rows.writerows((row["email"], row["line"]) for row in read_rows(result) if row["reason"] == TOO_LOW)
    draft.replace(target)
    return target


def _undebited_of(result: Path) -> Path:
    return result.with_name(f"{result.name.removesuffix('.csv').removesuffix('.result')}.undebited.csv")


def _cells(line: int, transaction: Any, batch_id: int, part: Part, intent: Intent) -> Sequence[object]:
    debited, credited = transaction["debited"], transaction["credited"]
    return (
        line,
        transaction["email"],
        transaction["id"],
        transaction["amount"],
        _word(debited),
        _word(credited),
        _word(debited and not credited),
        batch_id,
        "" if debited else TOO_LOW,
        transaction["label"] or "",
        _word(transaction["sandbox"]),
        transaction["organization"]["id"],
        transaction["created_at"],
        idempotency_key(intent.campaign, part.number),
        intent.again or "",
    )


def _unanswered(line: int, email: str, part: Part, intent: Intent) -> Sequence[object]:
    """Make the row of a line that may have been paid: the next run must know it as such, whatever its file holds."""
    return _blank(
        line,
        email,
        NOT_ANSWERED,
        amount=intent.amount,
        label=intent.label or "",
        sandbox=_word(intent.sandbox),
        organization_id=intent.organization_id,
        created_at=datetime.now(UTC).isoformat(),
        idempotency_key=idempotency_key(intent.campaign, part.number),
        again=intent.again or "",
    )


def _blank(line: int, email: str, reason: str, **known: object) -> Sequence[object]:
    cells = dict.fromkeys(COLUMNS, "") | {"line": line, "email": email, "reason": reason} | known
    return list(cells.values())


def _word(value: bool) -> str:
    return "yes" if value else "no"
