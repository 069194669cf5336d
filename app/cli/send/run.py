"""What a run of `points send` stands on: what was asked for, what the list holds, and how far it has come."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.cli.send.recipients import Part, Recipients
from app.cli.send.result_rows import Request
from app.cli.send.results import ResultFile
from app.cli.send.service import Issued, Service
from app.keys import DEVELOPMENT_PREFIX
from app.lists import ListFile

AMOUNT = ("amount", "points")
# The limit that the service has unless it says otherwise, in its answer to a verify.
_RECIPIENTS_MAX = 10_000


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the person has asked for; see the options of the command."""

    file: Path
    amount: int | None
    key: str
    url: str
    label: str | None
    atomic: bool
    column: str | None
    again: str | None
    result: Path | None
    patience: float
    yes: bool
    as_json: bool

    @property
    def result_path(self) -> Path:
        name = self.file.stem if self.file.suffix.lower() == ".csv" else self.file.name
        return self.result or self.file.with_name(f"{name}.result.csv")

    @property
    def sandbox(self) -> bool:
        return self.key.startswith(DEVELOPMENT_PREFIX)


class Run:
    """What a run stands on once its list is read, and how far it has come."""

    def __init__(
        self, choices: Choices, file: ListFile, amount: int, recipients: Recipients, column: int, service: Service
    ) -> None:
        """Ask the service whose key it is."""
        self.choices, self.list, self.amount, self.recipients = choices, file, amount, recipients
        self.column, self.service = column, service
        self.organization: Mapping[str, Any] = service.organization()
        self.campaign = ""  # Known once the list is read.
        self.results = ResultFile(choices.result_path)
        self.size = _RECIPIENTS_MAX
        # What the parts came to; `points` are those debited, `replayed` the batches that were issued before.
        self.totals = Counter[str]()
        self.balance: int = self.organization["balance"]
        self.stopped: str | None = None
        self.undebited: Path | None = None  # The list of those whom the balance did not pay.
        self.before = 0  # How many recipients earlier runs have sent to.

    @property
    def cost(self) -> int:
        return (self.recipients.count - self.before) * self.amount

    @property
    def unanswered(self) -> int:
        """How many recipients may be paid or not: no answer has told."""
        return sum(len(request.body["recipients"]) for request in self.results.unanswered)

    def body(self, part: Part) -> dict[str, Any]:
        """Return the body that a part is verified and sent with."""
        body = {"recipients": part.emails, "amount": self.amount, "atomic": self.choices.atomic}
        return body if self.choices.label is None else {**body, "label": self.choices.label}

    def request(self, part: Part) -> Request:
        """Make the request that sends a part: the one place where its key is made."""
        return Request(
            key=f"points-send-{self.campaign}-{part.number}",
            body=self.body(part),
            lines=part.lines,
            bad=part.bad,
            again=self.choices.again,
            organization_id=self.organization["id"],
            sandbox=self.choices.sandbox,
            announced_at=datetime.now(UTC).isoformat(),
        )

    def add(self, issued: Issued) -> None:
        """Add what became of a part."""
        debited = [transaction for transaction in issued.transactions if transaction.debited]
        self.balance = issued.current_balance
        self.totals.update(
            batches=1,
            replayed=issued.replayed,
            sent=len(issued.transactions),
            debited=len(debited),
            credited=sum(transaction.credited for transaction in debited),
            points=sum(transaction.amount for transaction in debited),
        )

    def is_ours(self, key: str) -> bool:
        """Tell whether an idempotency key is of this very campaign."""
        return f"-{self.campaign}-" in key
