"""A batch of five recipients, and what two features do to it, told to the service and to a small model of it.

The five: with an account; claimed by a registration in the feature *held*; with an account; whose hold is *extended*;
and whose live account is *erased*.
"""

import csv
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

from tests.contract.browser import Browser
from tests.contract.calls import Key, Organization, address, organization, refusal, success
from tests.contract.platform import platform
from tests.contract.reversing import taken
from tests.deadline import until
from tests.e2e.flaky_front import HELD, FlakyFront
from tests.service.up import Service
from tests.unit.workbooks import xlsx

SCHEDULED, AWAITING, REJECTED, ITEMS, CLAIMED, EXTENDED, PART, RETURNED, ERASED, BOUNDED, SUSPENDED, CLOCK = (
    *("scheduled", "awaiting", "rejected", "items", "held", "extended", "reversed in part", "returned", "erased"),
    *("key with bounds", "suspended organization", "sandbox clock"),
)
WORKBOOK, STOPPED = "workbook", "`points send` stopped in the midst"
FEATURES = (
    *(SCHEDULED, AWAITING, REJECTED, ITEMS, CLAIMED, EXTENDED, PART, RETURNED, ERASED, BOUNDED, SUSPENDED, CLOCK),
    *(WORKBOOK, STOPPED),
)
_OF_ISSUED = {CLAIMED: "claimed", EXTENDED: "held longer", PART: "taken back", RETURNED: "returned"}
IMPOSSIBLE = {
    frozenset({AWAITING, REJECTED}): "a batch is approved or rejected, not both",
    **{
        frozenset({REJECTED, feature}): f"what is rejected is never issued, so nothing of it is {done}"
        for feature, done in _OF_ISSUED.items()
    },
    frozenset({SCHEDULED, STOPPED}): "`points send` has no option for a later time",
}

OPENING, TAKEN, HELD_DAYS = 1_000, 3, 10
_AMOUNT = 10
_NAMES = {"first_name": "Ada", "last_name": "Lovelace"}
ACCOUNT, HELD_FIRST, LATER, LONGER, GONE = range(5)


@dataclass
class Recipient:
    """A recipient of the batch as the model has it; `state` is None until the batch is issued."""

    email: str
    amount: int
    reference: str | None = None
    label: str | None = None
    state: str | None = None
    reversed: int = 0

    @property
    def debited(self) -> int:
        return self.amount if self.state not in (None, "unpaid") else 0


@dataclass
class Story:
    """One batch with its organization, and the model of both."""

    service: Service
    features: frozenset[str]
    folder: Path
    status: str = ""
    batch_id: int = 0
    recipients: list[Recipient] = field(default_factory=list)
    gone: str = ""
    is_suspended: bool = False
    reversals: int = 0
    events: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began = datetime.now(UTC)
        self.clock: datetime | None = None
        self.sandbox = bool(self.features & {SCHEDULED, RETURNED, CLOCK})
        holds = {"held_days": HELD_DAYS} if self.features & {EXTENDED, RETURNED} else {}
        self.organization: Organization = organization(self.service, OPENING, sandbox_balance=OPENING, **holds)
        self.platform = platform(self.service)
        self.reader = self.organization.new_key(sandbox=self.sandbox)
        self.key = self._key()
        self.browser = Browser(self.service, self.organization.id, sandbox=self.sandbox)

    def __contains__(self, feature: str) -> bool:
        return feature in self.features

    def _key(self) -> Key:
        if BOUNDED not in self:
            return self.organization.new_key(sandbox=self.sandbox)
        bounds = {"scopes": ["read", "send", "reverse"], "batch_limit": OPENING, "daily_limit": OPENING}
        ends = datetime.now(UTC) + timedelta(days=400)
        return self.organization.new_key(sandbox=self.sandbox, expires_at=ends.isoformat(), **bounds)

    @property
    def payable(self) -> int:
        """What is to be debited of it: nothing for who was erased before."""
        return sum(each.amount for each in self.recipients if each.email != self.gone)

    @property
    def debited(self) -> int:
        return sum(each.debited for each in self.recipients)

    @property
    def given_back(self) -> int:
        return sum(each.reversed for each in self.recipients)

    def tell(self) -> Iterator[str]:
        """Do what happens, and yield after each part of it what has been done: then all must agree."""
        self._prepare()
        self._send()
        yield "accepted"
        if self.status == "awaiting_approval":
            yield from self._answer()
        if self.status == "scheduled":
            yield from self._become_due()
        if self.status == "issued":
            yield from self._afterwards()
        if SUSPENDED in self and not self.is_suspended:
            self._suspend()
        if ERASED in self and self.recipients[GONE].email != self.gone:
            self._erase()
        yield "over"

    def _prepare(self) -> None:
        if CLOCK in self:
            self.clock = self.reader.go_to_noon(2)
        if self.features & {AWAITING, REJECTED}:
            self.organization.change(approval_above=0, approval_of="all")
        has_items = ITEMS in self
        for place in range(5):
            own = {"amount": _AMOUNT * (place + 1), "reference": f"r-{place}", "label": f"Label {place}"}
            self.recipients.append(Recipient(address(), **(own if has_items else {"amount": _AMOUNT})))
        for place in (ACCOUNT, LATER):
            self._register(self.recipients[place].email)
        if ERASED in self:
            self.erased_id = self.platform.registered(self.recipients[GONE].email)["id"]
            self.gone = f"erased-{self.erased_id}"

    def _register(self, email: str) -> None:
        if self.sandbox:
            success(self.reader.call("POST", "/v1/sandbox/users", json={"email": email, **_NAMES}), 201)
        else:
            self.platform.registered(email)

    @property
    def now(self) -> datetime:
        """The time of the organization in the mode, as long as its clock goes by what was set, to some seconds."""
        return self.clock or datetime.now(UTC)

    def _set_clock(self, moment: datetime) -> None:
        success(self.reader.set_clock(moment))
        self.clock = moment

    def _send(self) -> None:
        waits = bool(self.features & {AWAITING, REJECTED})
        self.status = "awaiting_approval" if waits else "scheduled" if SCHEDULED in self else "issued"
        noon = self.now.replace(hour=12, minute=0, second=0, microsecond=0)  # No day ends soon after it.
        self.send_at = noon + timedelta(days=2) if SCHEDULED in self else None
        if STOPPED in self or {WORKBOOK, BOUNDED} <= self.features:
            self.batch_id = self._command()
        elif WORKBOOK in self:
            amount = "" if ITEMS in self else str(_AMOUNT)
            self.batch_id = self.browser.send_list("people.xlsx", self._list(), amount=amount, send_at=self.send_at)
        else:
            answer = self.key.send(self._body())
            assert answer.status_code == (201 if self.status == "issued" else 202), answer.text
            whole = answer.json()
            self.batch_id = (whole["data"] if answer.status_code == 202 else whole["additional_data"])["batch_id"]
        self.events.append(f"batch.{'awaiting_approval' if waits else self.status}")
        if self.status == "issued":
            until(lambda: self.reader.is_issued(self.batch_id), every_s=0.1)
            self._issue()

    def _body(self) -> dict[str, Any]:
        later = {} if self.send_at is None else {"send_at": self.send_at.isoformat()}
        if ITEMS in self:
            names = ("email", "amount", "reference", "label")
            return {"items": [{name: getattr(each, name) for name in names} for each in self.recipients], **later}
        return {"recipients": [each.email for each in self.recipients], "amount": _AMOUNT, **later}

    def _list(self) -> bytes:
        """Return the recipients as a workbook or a CSV."""
        names = ["E-mail", *(("points", "reference", "label") if ITEMS in self else ())]
        rows = [[each.email, each.amount, each.reference, each.label][: len(names)] for each in self.recipients]
        if WORKBOOK in self:
            return xlsx({"People": [names, *rows]})
        written = StringIO()
        csv.writer(written).writerows([names, *rows])
        return written.getvalue().encode()

    def _command(self) -> int:
        """Send by `points send`; if it is to be stopped, kill it before it hears the answer, and give it again."""
        path = self.folder / f"people.{'xlsx' if WORKBOOK in self else 'csv'}"
        path.write_bytes(self._list())
        amount = [] if ITEMS in self else ["--amount", str(_AMOUNT)]
        words = ["send", str(path), *amount, "--key", self.key.text, "--yes", "--json", "--url"]
        if STOPPED in self:
            with FlakyFront(self.service.url, fates=[HELD]) as front:
                command = self.service.words(*words, front.url)
                with subprocess.Popen(command, env=self.service.environment, stdout=subprocess.DEVNULL) as process:
                    assert front.is_holding(1), "it is accepted, and the answer never comes"
                    process.send_signal(signal.SIGKILL)
        self.service.run(*words, self.service.url)
        [batch] = self.reader.listed("batches")
        return int(batch["batch_id"])

    def _issue(self) -> None:
        """Issue in the model: what stands there is held, but for accounts of the mode and who was erased before."""
        self.status = "issued"
        for place, each in enumerate(self.recipients):
            has_account = place in (ACCOUNT, LATER) or (place == GONE and ERASED in self and not self.sandbox)
            each.state = "unpaid" if each.email == self.gone else "credited" if has_account else "held"

    def _answer(self) -> Iterator[str]:
        """Approve or reject what awaits it; an erasure and a suspension come before."""
        if ERASED in self:
            self._erase()
            yield "erased while it awaits an approval"
        other = self.organization.new_key(sandbox=self.sandbox, scopes=["approve"])
        if SUSPENDED in self:
            self._suspend()
            if AWAITING in self:
                refusal(other.approve(self.batch_id), 403, "organization")
                self._resume()
        if REJECTED in self:
            self.status = success(other.reject(self.batch_id))["status"]
            self.events.append("batch.rejected")
        else:
            self.status = success(other.approve(self.batch_id))["status"]
            self.events.append("batch.approved")
            if self.status != "scheduled":
                until(lambda: self.reader.is_issued(self.batch_id), every_s=0.1)
                self._issue()
                self.events.append("batch.issued")
            else:
                self.events.append("batch.scheduled")
        yield "answered"

    def _become_due(self) -> Iterator[str]:
        if ERASED in self and self.recipients[GONE].email != self.gone:
            self._erase()
            yield "erased while it is scheduled"
        if SUSPENDED in self:
            self._suspend()
        assert self.send_at is not None
        self._set_clock(self.send_at + timedelta(minutes=1))
        until(lambda: self.reader.batch(self.batch_id)["final"], every_s=0.2)
        if SUSPENDED in self:
            self.status = "refused"
            self.events.append("batch.refused")
        else:
            self._issue()
            self.events.append("batch.issued")
        yield "due"

    def _afterwards(self) -> Iterator[str]:
        transactions = self.reader.batch(self.batch_id)["transactions"]
        if SUSPENDED in self and not self.is_suspended and AWAITING not in self:
            self._suspend()
        if EXTENDED in self:
            held = transactions[LONGER]
            until_then = datetime.fromisoformat(held["held_until"]) + timedelta(days=30)
            path = f"/v1/transactions/{held['id']}/extend"
            success(self.key.call("POST", path, json={"held_until": until_then.isoformat()}))
            yield "extended"
        if CLAIMED in self:
            self._register(self.recipients[HELD_FIRST].email)
            self.recipients[HELD_FIRST].state = "credited"
            self.events.append("transaction.claimed")
            yield "claimed"
        if PART in self:
            taken(self.key, {"batch": self.batch_id, "amount": TAKEN})
            self.reversals += 1
            for each in self.recipients:
                each.reversed = TAKEN if each.debited else 0
            self.events.append("reversal.issued")
            yield "reversed in part"
        if ERASED in self and self.recipients[GONE].email != self.gone:
            self._erase()
            yield "erased"
        if RETURNED in self:
            yield from self._return(transactions)

    def _return(self, transactions: list[dict[str, Any]]) -> Iterator[str]:
        issued = datetime.fromisoformat(str(transactions[0]["created_at"]))
        self._set_clock(issued + timedelta(days=HELD_DAYS, hours=1))
        for place, each in enumerate(self.recipients):
            if each.state == "held" and not (place == LONGER and EXTENDED in self):
                each.state, each.reversed = "returned", each.amount
        count = sum(each.state == "returned" for each in self.recipients)
        until(lambda: len(self.reader.listed("transactions", state="returned")) == count, every_s=0.2)
        self.reversals += 1
        self.events.append("transaction.returned")
        yield "returned"

    def _erase(self) -> None:
        erased = self.platform.call("POST", f"/v1/platform/users/{self.erased_id}/erase")
        assert erased.status_code == 200, erased.text
        gone = self.recipients[GONE]
        self.erased, gone.email = gone.email, self.gone
        if gone.state == "held":  # The service gives the points back that nobody can claim any more.
            gone.state, gone.reversed = "reversed", gone.amount
            self.events.append("reversal.issued")
            self.reversals += 1
            until(lambda: self.reader.listed("transactions", state="reversed"), every_s=0.2)

    def _suspend(self) -> None:
        self.organization.change(is_suspended=True)
        self.is_suspended = True

    def _resume(self) -> None:
        self.organization.change(is_suspended=False)
        self.is_suspended = False
