"""The state of a run of `points send`: the options, the list, and the progress."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

from app.cli.send.result_rows import Request, was_erased
from app.cli.send.results import ResultFile
from app.cli.service import Service
from app.errors import Refused
from app.recipient_files.checking import Reading
from app.recipient_files.columns import Item
from app.recipient_files.recipients import Part, body_of
from app.values.key_hashes import DEVELOPMENT_PREFIX
from app.values.numbers import paid_count
from points_client import Limits, Organization, Sent


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The options of the command."""

    file: Path
    amount: int | None
    key: str
    url: str
    label: str | None
    atomic: bool
    sheet: str | None
    hidden_rows: str | None
    column: str | None
    amount_column: str | None
    reference_column: str | None
    label_column: str | None
    again: str | None
    result: Path | None
    patience: float
    yes: bool
    as_json: bool

    @property
    def result_path(self) -> Path:
        """Where the outcome is written: beside the list itself if `file` is a link to it."""
        file = self.file.resolve() if self.file.is_symlink() else self.file
        name = file.stem if file.suffix.lower() == ".csv" else file.name
        return self.result or file.with_name(f"{name}.result.csv")

    @property
    def sandbox(self) -> bool:
        return self.key.startswith(DEVELOPMENT_PREFIX)


class Run:
    """The state of a run whose list is open."""

    def __init__(self, choices: Choices, reading: Reading, service: Service) -> None:
        """Start a run; ask the service for the key's organization.

        Raises:
            PointsError: the service refuses the key, cannot be reached, or is too old for this command.
        """
        self.choices, self.service = choices, service
        self.list, self.columns, self.recipients = reading.file, reading.columns, reading.recipients
        self.organization: Organization = service.organization()
        if self.organization.limits is None:
            raise Refused(f"{choices.url} does not tell its limits: it is older than this command.")
        self.limits: Limits = self.organization.limits
        self.campaign = ""  # Known once the list is read.
        self.results = ResultFile(choices.result_path)
        self.size = self.limits.recipients
        # The sums of all parts: `points` counts debited points, `replayed` batches that were issued before.
        self.totals = Counter[str]()
        self.erased: set[str] = set()  # The ids of the transactions of erased users, who are not debited.
        # Right after the part that was issued last, which is that with the highest id: two are on their way at once.
        self.balance: int = self.organization.balance
        self._last_batch_id = 0
        self.stopped: str | None = None
        self.refusals: dict[int, str] = {}  # Why parts may not be sent now, by their numbers.
        self.undebited: Path | None = None  # The list of unpaid recipients.
        # The keys of the parts that earlier runs have sent, how many recipients they have, and the points for them.
        self.keys_before: set[str] = set()
        self.before = 0
        self.points_before = 0

    @property
    def cost(self) -> int:
        """The points for all recipients that are not sent to yet."""
        return self.recipients.points(self.choices.amount) - self.points_before

    def amount_of(self, item: Item) -> int:
        """Return an item's own amount, or that for all."""
        amount = self.choices.amount if item.amount is None else item.amount
        assert amount is not None, "without --amount each item has its own"
        return amount

    def affordable(self) -> int:
        """Return how many recipients the balance pays now. A part is paid up to the first that it cannot pay."""
        left, paid, skipped = self.organization.balance, 0, self.before
        for part in self.recipients.parts(self.size):
            totals = list(accumulate(map(self.amount_of, part.items[skipped:])))
            first = paid_count(left, recipients=len(totals), amount=None, running_totals=totals)
            left, paid = left - (totals[first - 1] if first else 0), paid + first
            skipped = max(0, skipped - len(part.items))
        return paid

    @property
    def unanswered(self) -> int:
        """The number of recipients whose outcome is unknown, because no answer came."""
        return sum(len(request.items) for request in self.results.unanswered)

    def body(self, part: Part) -> dict[str, Any]:
        """Return the body that verifies and sends a part."""
        choices = self.choices
        return body_of(part.items, amount=choices.amount, label=choices.label, atomic=choices.atomic)

    def key(self, number: int) -> str:
        """Return the idempotency key of a part."""
        return f"points-send-{self.campaign}-{number}"

    def request(self, part: Part) -> Request:
        return Request(
            key=self.key(part.number),
            body=self.body(part),
            lines=part.lines,
            bad=part.bad,
            again=self.choices.again,
            organization_id=self.organization.id,
            sandbox=self.choices.sandbox,
            announced_at=datetime.now(UTC).isoformat(),
        )

    def add(self, issued: Sent) -> None:
        """Add the outcome of a part to the sums."""
        debited = [transaction for transaction in issued.transactions if transaction.debited]
        assert issued.current_balance is not None, "an issued batch has one"
        if issued.batch_id > self._last_batch_id:
            self.balance, self._last_batch_id = issued.current_balance, issued.batch_id
        erased = [str(transaction.id) for transaction in issued.transactions if was_erased(transaction)]
        self.erased.update(erased)
        self.totals.update(
            batches=1,
            replayed=int(issued.replayed),
            sent=len(issued.transactions),
            debited=len(debited),
            erased=len(erased),
            credited=sum(transaction.credited for transaction in debited),
            points=sum(transaction.amount for transaction in debited),
        )

    @property
    def unpaid(self) -> int:
        """The number of recipients whom the balance did not pay."""
        return self.totals["sent"] - self.totals["debited"] - self.totals["erased"]

    def is_of_this_campaign(self, key: str) -> bool:
        """Tell whether an idempotency key belongs to this campaign."""
        return f"-{self.campaign}-" in key
