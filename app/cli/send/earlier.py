"""Checks the results of earlier runs of a list, so that nobody is paid twice."""

from array import array
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain

from app.cli.send.result_rows import address_of, reference_of, text_of, word
from app.cli.send.run import Run
from app.errors import Refused
from app.recipient_files.columns import Item
from app.recipient_files.recipients import digest
from app.values.addresses import parse
from app.values.numbers import points

# The service keeps an idempotency key for 30 days at least; after that it may pay again.
_REMEMBERED = timedelta(days=30)


def require_no_second_payment(run: Run) -> None:
    """Refuse a run that would pay a recipient twice unnoticed by the service; count the recipients sent before.

    Another campaign with this label and amount counts in full, also the recipients that its balance did not pay: they
    may have been paid since, from the list of unpaid recipients. If the list has its own amounts, other amounts count
    too, since an amount may have been corrected. With --again, only campaigns with the same name count.

    Raises:
        Refused: the list has changed since it was sent, or was sent too long ago; or the result file is unreliable.
    """
    payer, again = (str(run.organization.id), word(run.choices.sandbox)), run.choices.again
    amount, paid, sent_at = run.choices.amount, _Paid(run), datetime.now(UTC).isoformat()
    sent: dict[str, array[int]] = {}  # The amounts of each request of this campaign.
    for row in run.results.rows():
        if (row["organization_id"], row["sandbox"]) != payer:
            continue
        if run.is_of_this_campaign(row["idempotency_key"]):
            sent.setdefault(row["idempotency_key"], array("Q")).append(int(row["amount"]))
            sent_at = min(sent_at, row["created_at"])
        elif (amount is None or row["amount"] == str(amount)) and (again is None or row["again"] == text_of(again)):
            paid.add(row)
    run.keys_before = set(sent)
    run.before, run.points_before = sum(map(len, sent.values())), sum(map(sum, sent.values()))
    _require_answered(run, payer)
    name, way_out = run.choices.file.name, f"name a new campaign with {'' if again is None else 'another '}--again NAME"
    if _is_old(sent_at):
        raise Refused(
            f"{name} was sent on {sent_at[:10]}, and the service remembers that for 30 days only: it would pay again."
            f" If that is what you want, {way_out}."
        )
    if changed := _changed_amount(run, sent):
        raise Refused(
            f"{changed}, and what was sent cannot be changed. Send {name} as it was, and the difference in another"
            f" list; or, to pay everybody once more, {way_out}."
        )
    # A campaign that was sent whole is only replayed.
    if run.before < run.recipients.count and (others := paid.count()):
        raise Refused(
            f"{name}, or what is used of it, has changed since {run.results.path.name} was written. {others} of its"
            f" recipients were paid then with this {'label' if amount is None else 'amount and label'}, or may have"
            " been: they would be paid again. Send the new lines in a separate file; or, to pay everybody,"
            f" {way_out}."
        )


def _changed_amount(run: Run, sent: Mapping[str, Sequence[int]]) -> str | None:
    """Name the first line that was sent with another amount. Its part has the same key: it would not be paid again."""
    for part in run.recipients.parts(run.size) if sent else ():
        before_of_all = sent.get(run.key(part.number), ())
        if len(before_of_all) != len(part.items):
            continue  # Not sent, or sent with another limit of recipients: the service refuses that.
        for line, before, now in zip(part.lines, before_of_all, map(run.amount_of, part.items), strict=True):
            if before != now:
                return f"Line {line} of {run.choices.file.name} has {points(now)} points, but had {points(before)}"
    return None


def _require_answered(run: Run, payer: tuple[str, str]) -> None:
    for request in run.results.unanswered:
        if (str(request.organization_id), word(request.sandbox)) != payer or _is_old(request.announced_at):
            raise Refused(
                f"A run of {request.announced_at[:10]} with a key of organization {request.organization_id}"
                f"{' for the sandbox' if request.sandbox else ''} was cut off. Give it again with that key, within 30"
                f" days. If you cannot, find out its outcome, then remove {run.results.path_of(request).name}."
            )


class _Paid:
    """The payments of other campaigns, certain or possible, to recipients of this list.

    Two payments with the same label are the same if they have the same reference, or, unless both have one, the same
    address. A line with its own label is also compared with payments that have the common label: its own label may not
    have been used then.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._default_label = text_of(run.choices.label or "")
        self._paid: set[bytes] = set()

    def add(self, row: Mapping[str, str]) -> None:
        key, reference, label = parse(address_of(row)).key, reference_of(row), row["label"]
        if not self._run.recipients.holds(key, reference):
            return
        if reference is None:
            self._paid.add(digest("address alone", key, label))
        else:
            self._paid |= {digest("reference", reference, label), digest("address", key, label)}

    def count(self) -> int:
        """Return how many lines of the list may have been paid so."""
        if not self._paid:
            return 0
        items = chain.from_iterable(part.items for part in self._run.recipients.parts(self._run.size))
        return sum(map(self._holds, items))

    def _holds(self, item: Item) -> bool:
        key = parse(item.email).key
        ways = [("address alone", key), ("address", key) if item.reference is None else ("reference", item.reference)]
        labels = {self._default_label, text_of(item.label or self._run.choices.label or "")}
        return any(digest(*way, label) in self._paid for way in ways for label in labels)


def _is_old(moment: str) -> bool:
    return datetime.now(UTC) - datetime.fromisoformat(moment) > _REMEMBERED
