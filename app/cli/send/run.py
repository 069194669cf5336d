"""The state of one run of `points send`: the options, the list, and the progress."""

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
from app.lists import ListFile
from app.values.keys import DEVELOPMENT_PREFIX

AMOUNT = ("amount", "points")
# The service's default limit; its answer to a verify tells another limit.
_RECIPIENTS_MAX = 10_000


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The options of the command."""

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
    """The state of a run whose list is open."""

    def __init__(
        self, choices: Choices, file: ListFile, amount: int, recipients: Recipients, column: int, service: Service
    ) -> None:
        """Start a run; ask the service for the key's organization.

        Raises:
            PointsError: the service refuses the key, or cannot be reached.
        """
        self.choices, self.list, self.amount, self.recipients = choices, file, amount, recipients
        self.column, self.service = column, service
        self.organization: Mapping[str, Any] = service.organization()
        self.campaign = ""  # Known once the list is read.
        self.results = ResultFile(choices.result_path)
        self.size = _RECIPIENTS_MAX
        # The sums of all parts: `points` counts debited points, `replayed` batches that were issued before.
        self.totals = Counter[str]()
        self.balance: int = self.organization["balance"]
        self.stopped: str | None = None
        self.undebited: Path | None = None  # The list of unpaid recipients.
        self.before = 0  # How many recipients earlier runs have sent to.

    @property
    def cost(self) -> int:
        return (self.recipients.count - self.before) * self.amount

    @property
    def unanswered(self) -> int:
        """The number of recipients whose outcome is unknown, because no answer came."""
        return sum(len(request.body["recipients"]) for request in self.results.unanswered)

    def body(self, part: Part) -> dict[str, Any]:
        """Return the body to verify and send a part with."""
        body = {"recipients": part.emails, "amount": self.amount, "atomic": self.choices.atomic}
        return body if self.choices.label is None else {**body, "label": self.choices.label}

    def request(self, part: Part) -> Request:
        """Make the request of a part. Only this function makes its key."""
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
        """Add the outcome of a part to the sums."""
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

    def is_of_this_campaign(self, key: str) -> bool:
        """Tell whether an idempotency key belongs to this campaign."""
        return f"-{self.campaign}-" in key
