"""The data of `GET /v1/statement`."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from app.noun import Points, says

Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$", json_schema_extra={"format": "date"})]
_Balance = Annotated[int, Field(json_schema_extra={"format": "int64"})]


class StatementTotal(BaseModel):
    """All days together. `opening_balance + refilled - debited + reversed + returned = closing_balance`."""

    opening_balance: _Balance = says(
        "The balance at the beginning. Below 0 only if points were spent at a time before that of their refill, because"
        " a clock was put back: in a sandbox, by its reset.",
        0,
    )
    refilled: int = says("Points put in. Below 0 if a reset of the sandbox took points away.", 1_000)
    debited: Points = says("Points of the debited transactions of batches issued then.", 100)
    reversed: Points = says("Points that callers took back then.", 50)
    returned: Points = says("Points that went back then because they were held too long.", 0)
    closing_balance: _Balance = says("The balance at the end; of today, the balance as it is.", 950)
    batches: int = says("Batches issued.", 1, ge=0)
    transactions: int = says("Their transactions.", 2, ge=0)
    unpaid: int = says("Those of the transactions that were not debited.", 0, ge=0)


class StatementDay(StatementTotal):
    """One day in UTC. It opens as the day before closed."""

    date: Day = says("The day.", "2026-01-31")


_FIELDS: dict[str, Any] = {
    "from": (Day, says("The first day.", "2026-01-31")),
    "to": (Day, says("The last day.", "2026-01-31")),
    "days": (list[StatementDay], says("Each day, in order, also those on which nothing moved the balance.")),
    "total": (StatementTotal, says("All days together.")),
}
Statement = create_model("Statement", __doc__="What moved the balance, day by day.", **_FIELDS)
