"""A naive model of the ledger, to hold the set-based one against: what a step is, and what it does to the books."""

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Refill:
    organization_id: int
    sandbox: bool
    amount: int


@dataclass(frozen=True, kw_only=True)
class Send:
    organization_id: int
    sandbox: bool
    atomic: bool
    amounts: list[int]
    emails: list[str]
    is_later: bool = False


@dataclass(frozen=True, kw_only=True)
class Register:
    email: str


@dataclass(frozen=True, kw_only=True)
class Suspend:
    organization_id: int
    is_suspended: bool


@dataclass(frozen=True, kw_only=True)
class Drain:
    organization_id: int


@dataclass(frozen=True, kw_only=True)
class Release:
    """The moment of all that is scheduled has come."""


@dataclass(frozen=True, kw_only=True)
class Cancel:
    """Call off one of an organization's batches that are not final: `which` of them, counted round."""

    organization_id: int
    which: int


Step = Refill | Send | Register | Suspend | Drain | Release | Cancel


@dataclass(kw_only=True)
class Row:
    """A transaction as the model has it; `key` is the address under which a user would be registered."""

    key: str
    debited: bool
    credited: bool
    balance: int
    points: int


@dataclass
class Model:
    """What the contract says, word by word: one recipient at a time, in memory."""

    balances: dict[tuple[int, bool], int] = field(default_factory=lambda: defaultdict(int))
    users: dict[str, int] = field(default_factory=dict)
    suspended: dict[int, bool] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def issue(self, send: Send) -> list[Row] | None:
        if self.suspended.get(send.organization_id):
            return None
        purse, rows = (send.organization_id, send.sandbox), []
        debited = self.balances[purse] >= sum(send.amounts) or not send.atomic
        for key, amount in zip(map(str.lower, send.emails), send.amounts, strict=True):
            debited = debited and self.balances[purse] >= amount  # The first that cannot be paid ends the paying.
            credited = debited and key in self.users
            points = 0 if send.sandbox else amount  # Of the sandbox, nobody ever gets any.
            self.balances[purse] -= amount if debited else 0
            self.users.update({key: self.users[key] + points} if credited else {})
            rows.append(Row(key=key, debited=debited, credited=credited, balance=self.balances[purse], points=points))
        self.rows += rows
        return rows

    def register(self, key: str) -> None:
        if key not in self.users:
            held = [row for row in self.rows if row.key == key and row.debited and row.points]
            self.users[key] = sum(row.points for row in held)
            for row in held:
                row.credited = True
