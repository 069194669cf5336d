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
    has_end: bool = False


@dataclass(frozen=True, kw_only=True)
class Register:
    """Register a user: live, or of an organization's sandbox."""

    email: str
    sandbox_of: int | None = None


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


@dataclass(frozen=True, kw_only=True)
class Reverse:
    """Take back the batch that was queued as number `of` (from the newest), or some of its places, in this order."""

    of: int
    places: list[int] | None
    amount: int | None
    atomic: bool


@dataclass(frozen=True, kw_only=True)
class End:
    """The end of all that is held with one has come, whether a return has run or not."""


@dataclass(frozen=True, kw_only=True)
class Return:
    """The return of what is held too long runs."""


Step = Refill | Send | Register | Suspend | Drain | Release | Cancel | Reverse | End | Return


# A user: whose sandbox knows it (None: it is live), and its address.
User = tuple[int | None, str]


@dataclass(kw_only=True)
class Row:
    """A transaction as the model has it; `key` is the address under which a user would be registered."""

    key: str
    debited: bool
    amount: int
    purse: tuple[int, bool]
    credited: bool = False
    balance: int = 0
    reversed: int = 0
    has_end: bool = False
    is_ended: bool = False

    @property
    def user(self) -> User:
        """Whom it is for."""
        organization_id, sandbox = self.purse
        return organization_id if sandbox else None, self.key

    @property
    def is_held(self) -> bool:
        return self.debited and not self.credited and self.reversed < self.amount


@dataclass
class Model:
    """What the contract says, word by word: one recipient at a time, in memory."""

    balances: dict[tuple[int, bool], int] = field(default_factory=lambda: defaultdict(int))
    users: dict[User, int] = field(default_factory=dict)
    suspended: dict[int, bool] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def issue(self, send: Send) -> list[Row] | None:
        if self.suspended.get(send.organization_id):
            return None
        purse, rows = (send.organization_id, send.sandbox), []
        debited = self.balances[purse] >= sum(send.amounts) or not send.atomic
        for key, amount in zip(map(str.lower, send.emails), send.amounts, strict=True):
            debited = debited and self.balances[purse] >= amount  # The first that cannot be paid ends the paying.
            row = Row(key=key, debited=debited, amount=amount, purse=purse, has_end=send.has_end)
            row.credited = debited and row.user in self.users
            self.balances[purse] -= amount if debited else 0
            self.users.update({row.user: self.users[row.user] + amount} if row.credited else {})
            row.balance = self.balances[purse]
            rows.append(row)
        self.rows += rows
        return rows

    def register(self, user: User) -> None:
        if user not in self.users:
            held = [row for row in self.rows if row.user == user and row.is_held and not row.is_ended]
            self.users[user] = sum(row.amount - row.reversed for row in held)
            for row in held:
                row.credited = True

    def end(self) -> None:
        for row in self.rows:
            row.is_ended = row.is_ended or row.has_end

    def give_back(self) -> None:
        for row in self.rows:
            if row.is_held and row.is_ended:
                self.balances[row.purse] += row.amount - row.reversed
                row.reversed = row.amount

    def reverse(self, send: Send, rows: list[Row], reverse: Reverse) -> list[tuple[int, str | None]]:
        """Take from each row what is asked for, and return how much and why not."""
        outcomes = [_outcome(row, reverse.amount) for row in rows]
        if reverse.atomic and any(code for _, code in outcomes):
            outcomes = [(0, code) for _, code in outcomes]
        for row, (taken, _) in zip(rows, outcomes, strict=True):
            row.reversed += taken
            self.balances[send.organization_id, send.sandbox] += taken
            if row.credited:
                self.users[row.user] -= taken
        return outcomes


def _outcome(row: Row, amount: int | None) -> tuple[int, str | None]:
    left = row.amount - row.reversed
    if not row.debited:
        return 0, "not_debited"
    if left == 0:
        return 0, "already_reversed"
    if amount is not None and amount > left:
        return 0, "more_than_left"
    return amount or left, None
