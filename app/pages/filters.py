"""What a list is asked for, where a page of it begins, and what a page is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from app.settings import INT64_MAX

Row = TypeVar("Row")

# A page looks at no more rows than this, however few of them the filters let through. It then ends
# early, and the next one goes on from there: no page is slow because its rows are rare.
LOOKED_AT_MAX = 5_000

# A transaction's id is its batch's times this, plus its position (the SQL function `transaction_id`).
POSITIONS = 131_072


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """Whose rows, and which: None lets every row through. Both times are inclusive.

    A flag asks a transaction for its value, and a batch for at least one transaction that has the
    values of all the flags. `email_key` is the normalised form of an address.
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
    # Of batches alone.
    idempotency_key: str | None = None
    label: str | None = None
    status: str | None = None

    @property
    def credit(self) -> bool | None:
        """What is asked of `credited` and `allocated`, which are equal in every transaction."""
        return self.allocated if self.credited is None else self.credited

    @property
    def contradict_themselves(self) -> bool:
        """Tell whether no transaction can have these flags (contract, the table of the three flags)."""
        asked = {self.credited, self.allocated} - {None}
        return len(asked) > 1 or (self.debited is False and self.credit is True)

    def parameters(self) -> dict[str, Any]:
        """Return the values that the statements of the pages name."""
        return {
            "organization_id": self.organization_id,
            "sandbox": self.sandbox,
            "email_key": self.email_key,
            "batch_id": self.batch_id,
            "batch_first_id": None if self.batch_id is None else min(self.batch_id * POSITIONS, INT64_MAX),
            "batch_last_id": None if self.batch_id is None else min((self.batch_id + 1) * POSITIONS - 1, INT64_MAX),
            "created_from": self.created_from,
            "created_to": self.created_to,
            "debited": self.debited,
            "credited": self.credit,
            "idempotency_key": self.idempotency_key,
            "label": self.label,
            "status": self.status,
            "looked_at_max": LOOKED_AT_MAX,
        }


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order of a list: a time and an id, newest first. The lists of one address go by id alone."""

    moment: datetime | None
    id: int


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows of a list, and where the next page begins; None at the end of the list."""

    rows: Sequence[Row]
    next: Place | None
