"""What the service answers about a statement."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from points_client.answers import Answer, Unlike
from points_client.reading import read


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementTotal:
    """All days: opening_balance + refilled - debited + reversed + returned = closing_balance.

    `reversed` are points that callers took back, `returned` those that were held too long. `unpaid` of the
    `transactions` were not debited.
    """

    opening_balance: int
    refilled: int
    debited: int
    reversed: int
    returned: int
    closing_balance: int
    batches: int
    transactions: int
    unpaid: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementDay(StatementTotal):
    """One day in UTC. It opens as the day before closed; today closes with the balance as it is."""

    date: date


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """What moved the balance of the key's mode: each day, also without anything, and their total."""

    from_: date
    to: date
    days: tuple[StatementDay, ...]
    total: StatementTotal


def read_statement(asked: Mapping[str, str], answer: Answer) -> Statement:
    """Return an answer as the statement of the days asked for.

    Raises:
        Unlike: it is of other days.
    """
    if {name: answer.data[name] for name in asked} != asked:
        raise Unlike("it is of other days")
    return read(Statement, {**answer.data, "from_": answer.data["from"]})
