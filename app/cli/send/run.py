"""What a run of `points send` stands on: what was asked for, what the file holds, and whose key it is."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from app.cli.csv_file import CsvFile
from app.cli.progress import progress_bar
from app.cli.send import words
from app.cli.send.column import Column, find_column
from app.cli.send.earlier import Earlier, Intent, read_earlier, require_no_second_payment
from app.cli.send.recipients import Part, Recipients, campaign
from app.cli.send.results import ResultFile
from app.cli.send.service import Service
from app.cli.send.totals import Totals
from app.cli.tables import console
from app.errors import Refused
from app.keys import DEVELOPMENT_PREFIX

# The limit that the service has unless it says otherwise, in its answer to a verify.
RECIPIENTS_MAX = 10_000


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the person has asked for; see the options of the command."""

    file: Path
    amount: int
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

    def body(self, part: Part) -> dict[str, Any]:
        body = {"recipients": part.emails, "amount": self.amount, "atomic": self.atomic, "label": self.label}
        return {name: value for name, value in body.items() if value is not None}


@dataclass(kw_only=True)
class Run:
    """What a run stands on once the file is read and the service has said whose key it is."""

    choices: Choices
    recipients: Recipients
    column: Column
    service: Service
    results: ResultFile
    organization: Mapping[str, Any]
    intent: Intent
    earlier: Earlier
    # What a person reads, and on standard error what moves or went wrong.
    out: Console
    err: Console
    size: int = RECIPIENTS_MAX
    totals: Totals = field(default_factory=Totals)
    parts_sent: int = 0
    sent: int = 0
    # The number of a part that was sent and not answered.
    part_under_way: int | None = None
    stopped: str | None = None
    # Where those stand whom the balance did not pay.
    undebited: Path | None = None

    @property
    def unanswered(self) -> int:
        """Return how many recipients were sent points and may have got them or not."""
        return 0 if self.part_under_way is None else min(self.size, self.recipients.count - self.sent)


@contextmanager
def prepared(choices: Choices) -> Iterator[Run]:
    """Read the file and meet the service; nothing is sent.

    Raises:
        PointsError: there is nothing to send, the service or the key is not right, or somebody would be paid twice.
    """
    out, err = console(stderr=choices.as_json), console(stderr=True)
    with ExitStack() as stack:
        if choices.result_path.resolve() == choices.file.resolve():
            raise Refused("The result would replace the file itself: choose another --result FILE.")
        recipients, column = _read(choices, stack, err)
        words.bad_lines(err, recipients.bad, result_name=choices.result_path.name)
        if not recipients.count:
            raise Refused(f"{choices.file.name} holds no e-mail address to send to in {column.heading}.")
        results = stack.enter_context(ResultFile(choices.result_path))
        say = _Sayer(err)
        service = Service(choices.url, choices.key, patience_s=choices.patience, say=say)
        stack.enter_context(closing(service))
        if service.is_overheard:
            say(f"The key travels to {service.url} unencrypted: prefer https://.")
        organization = service.organization()
        intent = Intent(
            campaign=campaign(recipients.fingerprint, amount=choices.amount, label=choices.label, again=choices.again),
            amount=choices.amount,
            label=choices.label,
            sandbox=choices.key.startswith(DEVELOPMENT_PREFIX),
            organization_id=organization["id"],
            again=choices.again,
        )
        earlier = read_earlier(results.earlier(), intent, recipients)
        require_no_second_payment(earlier, intent, name=choices.file.name, result=results.path)
        yield Run(
            choices=choices,
            recipients=recipients,
            column=column,
            service=service,
            results=results,
            organization=organization,
            intent=intent,
            earlier=earlier,
            out=out,
            err=err,
        )


def _read(choices: Choices, stack: ExitStack, err: Console) -> tuple[Recipients, Column]:
    with closing(CsvFile(choices.file)) as file:
        column = find_column(file, choices.column)
        with progress_bar(f"Reading {file.name}", total=file.size, err=err) as advance_to:
            recipients = Recipients.read(file, column, advance_to)
    stack.callback(recipients.close)
    return recipients, column


class _Sayer:
    """Says on standard error why nothing moves, and each thing once."""

    def __init__(self, err: Console) -> None:
        self._err = err
        self._last = ""

    def __call__(self, sentence: str) -> None:
        if sentence != self._last:
            self._err.print(sentence, style="dim", markup=False, highlight=False, soft_wrap=True)
        self._last = sentence
