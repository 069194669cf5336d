"""The filters of a list, a position in it, and a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from app.batches.transaction import CREDITED, HELD, RETURNED, REVERSED, UNPAID
from app.scope import MEMBER, OPERATOR, PLATFORM_KEY, AskedAuthor
from app.settings import INT64_MAX
from app.values.ids import POSITIONS, batch_and_position

Row = TypeVar("Row")

# A page looks at no more rows than this, so it is fast even if few rows match: it ends early, and the next page
# continues from there.
LOOKED_AT_MAX = 5_000
# A page for a person looks at so many batches: a batch is cheaper than a transaction with its user.
FAR_BATCHES_MAX = 1_000_000

# What `require_seen` of `app.batches.approval` lets a key see that has no scope `read`.
SEEN_BY = """
    (status = 'awaiting_approval' OR api_key_id = :seen_by OR CAST(approval ->> 'api_key_id' AS bigint) = :seen_by)
"""

# The `sender` of what programs have sent.
BY_API = 0

_COLUMN_OF_AUTHOR = {MEMBER: "member_id", PLATFORM_KEY: "platform_key_id", OPERATOR: "operator"}

# A batch has a label, and so may each of its items.
_LABEL_OF_BATCH = """
    (strpos(lower(label), :label_part) > 0
     OR has_labels AND EXISTS (SELECT FROM unnest((SELECT labels FROM batches WHERE id = looked_at.id)) AS own (label)
                               WHERE strpos(lower(own.label), :label_part) > 0))
"""

# `debited` and `credited` of a transaction in each state.
_NO_FLAGS: tuple[bool | None, bool | None] = (None, None)
_FLAGS_OF_STATE: dict[str | None, tuple[bool | None, bool | None]] = {
    CREDITED: (True, True),
    HELD: (True, False),
    UNPAID: (False, False),
    REVERSED: (True, None),
    RETURNED: (True, False),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """The organization, the mode, and the filters; None means no filter. Both times are inclusive.

    The organization of the platform's own lists is 0.

    A transaction matches a flag by its own value; a batch matches the flags if any of its transactions has all of
    them. `email_key` is the normalised form of an address.
    """

    organization_id: int
    sandbox: bool
    email_key: str | None = None
    batch_id: int | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    debited: bool | None = None
    credited: bool | None = None
    allocated: bool | None = None
    # Batches and reversals.
    idempotency_key: str | None = None
    # Batches only: what this key has sent, has answered, or may answer.
    seen_by: int | None = None
    # Transactions only.
    reference: str | None = None
    state: str | None = None
    # Transactions and entries. Then `email_key` is the user's present address, and these are those of before.
    user_id: int | None = None
    former_keys: Sequence[str] = ()
    # Deliveries only.
    webhook_id: int | None = None
    # Requests only: the status of an answer, such as `403`, or a hundred of them, such as `4xx`.
    api_key_id: int | None = None
    answered: str | None = None
    # Actions only: who did it, and how its word begins, such as by `batch`.
    by: AskedAuthor | None = None
    about: str | None = None
    # The console only: parts of an address and of a label, both in lower case; a member's id, `BY_API` for the API; and
    # the points of a transaction, or of a whole batch.
    email_part: str | None = None
    label_part: str | None = None
    sender: int | None = None
    points: int | None = None
    # What columns of the list's own table must equal: its rows are read one by one.
    equals: Mapping[str, str | int] = field(default_factory=dict, hash=False)

    @property
    def debit(self) -> bool | None:
        """The value that `debited` must have, by its own filter or by the state."""
        return next(iter(self._debits), None)

    @property
    def credit(self) -> bool | None:
        """The value that `credited` and `allocated` must have; they are equal in every transaction."""
        return next(iter(self._credits), None)

    @property
    def _debits(self) -> set[bool]:
        return _given(self.debited, _FLAGS_OF_STATE.get(self.state, _NO_FLAGS)[0])

    @property
    def _credits(self) -> set[bool]:
        return _given(self.credited, self.allocated, _FLAGS_OF_STATE.get(self.state, _NO_FLAGS)[1])

    @property
    def email_keys(self) -> list[str]:
        """The addresses of which a transaction must have one."""
        return [] if self.email_key is None else [self.email_key, *self.former_keys]

    @property
    def contradict_themselves(self) -> bool:
        """Tell whether no transaction can have these flags and this state (contract, the table of the three flags)."""
        return len(self._debits) > 1 or len(self._credits) > 1 or (self.debit is False and self.credit is True)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the pages' statements."""
        return {
            **{name: getattr(self, name) for name in self.__slots__ if name not in ("equals", "former_keys")},
            **self.equals,
            "email_keys": self.email_keys,
            "batch_first_id": None if self.batch_id is None else min(self.batch_id * POSITIONS, INT64_MAX),
            "batch_last_id": None if self.batch_id is None else min((self.batch_id + 1) * POSITIONS - 1, INT64_MAX),
            "debited": self.debit,
            "credited": self.credit,
            "author": None if self.by is None else self.by.which,
        }

    def scope_conditions(self, *, moment: str = "created_at") -> list[str]:
        """Return the conditions on organization, mode and time; `moment` is the column for the time filters."""
        return ["organization_id = :organization_id", "sandbox = :sandbox", *self.time_conditions(moment)]

    def time_conditions(self, moment: str = "created_at") -> list[str]:
        """Return the conditions on the time."""
        conditions = [] if self.created_from is None else [f"{moment} >= :created_from"]
        if self.created_to is not None:
            conditions.append(f"{moment} <= :created_to")
        return conditions

    def head_conditions(self, *, moment: str = "created_at", begin: str = "") -> list[str]:
        """Return the conditions on a batch or a reversal that an index serves; `begin` says where a page begins."""
        conditions = self.scope_conditions(moment=moment)
        if moment != "created_at":
            conditions.append(f"{moment} IS NOT NULL")
        if begin:
            conditions.append(begin)
        if self.batch_id is not None:
            conditions.append("id = :batch_id")
        conditions += self.equal("idempotency_key")
        if self.debit is False:
            conditions.append("debited_count < recipient_count")
        return conditions

    def flag_conditions(self) -> list[str]:
        """Return the conditions on a transaction's user, flags and state."""
        conditions = self.equal("user_id")
        if self.debit is not None:
            conditions.append("debited = :debited")
        if self.credit is not None:
            conditions.append("credited = :credited")
        if self.state in (REVERSED, RETURNED):
            conditions.append(f"points_left = 0 AND returned_at IS {'' if self.state == REVERSED else 'NOT '}NULL")
        elif self.state is not None and self.debit:
            conditions.append("points_left IS DISTINCT FROM 0")
        return conditions

    def batch_conditions(self, *, label: str = _LABEL_OF_BATCH) -> list[str]:
        """Return the conditions on a batch that no index serves: its rows are read one by one, as `looked_at`."""
        conditions = self.own_conditions() + self.sender_conditions()
        if self.label_part is not None:
            conditions.append(label)
        if self.points is not None:
            conditions.append("debited_amount = :points")
        if self.seen_by is not None:
            conditions.append(SEEN_BY)
        return conditions

    def sender_conditions(self) -> list[str]:
        """Return the condition on the sender of a batch."""
        if self.sender is None:
            return []
        return ["member_id IS NULL" if self.sender == BY_API else "member_id = :sender"]

    def request_conditions(self) -> list[str]:
        """Return the conditions on a call, whose rows are read one by one."""
        conditions = self.own_conditions() + self.equal("api_key_id", "batch_id")
        if self.answered is not None:
            conditions.append("CAST(status AS text) LIKE replace(:answered, 'x', '_')")
        return conditions

    def action_conditions(self) -> list[str]:
        """Return the conditions on an action, whose rows are read one by one."""
        conditions = self.own_conditions()
        if self.about is not None:
            conditions.append("starts_with(action, :about)")
        if self.by is not None:
            column = _COLUMN_OF_AUTHOR[self.by.kind]
            conditions.append(f"{column} IS NOT NULL" if self.by.which is None else f"{column} = :author")
        return conditions

    def part_conditions(
        self, *, label: str = "coalesce(own_label, label)", amount: str = "coalesce(own_amount, amount)"
    ) -> list[str]:
        """Return the conditions of the console on a transaction, whose label and amount are so in the statement."""
        conditions = [] if self.email_part is None else ["strpos(coalesce(email_key, email), :email_part) > 0"]
        if self.label_part is not None:
            conditions.append(f"strpos(lower({label}), :label_part) > 0")
        if self.points is not None:
            conditions.append(f"{amount} = :points")
        return conditions

    def own_conditions(self) -> list[str]:
        """Return the conditions on columns of the list's own table."""
        return [f"{column} = :{column}" for column in self.equals]

    def equal(self, *names: str) -> list[str]:
        """Return the conditions of those of these filters that are given, each on the column of its name."""
        return [f"{name} = :{name}" for name in names if getattr(self, name) is not None]


def _given(*flags: bool | None) -> set[bool]:
    return {flag for flag in flags if flag is not None}


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """A position in a list: a time and an id. `moment` is None in the lists of an address, which are sorted by id."""

    moment: datetime | None
    id: int

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the pages' statements; a transaction's id also gives its batch and position."""
        batch_id, position = batch_and_position(self.id)
        return {
            "start_moment": self.moment,
            "start_id": self.id,
            "start_batch_id": batch_id,
            "start_position": position,
        }


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows of a list, and where the next page begins; `next` is None at the end of the list."""

    rows: Sequence[Row]
    next: CursorPosition | None
