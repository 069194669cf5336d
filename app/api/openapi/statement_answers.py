"""The data of `GET /v1/statement`."""

from typing import Annotated, Any

from pydantic import Field, create_model

from app.noun import says
from app.statement.read import lines

Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$", json_schema_extra={"format": "date"})]
StatementDay = create_model(
    "StatementDay",
    __base__=lines.model,
    __doc__="One day in UTC. It opens as the day before closed.",
    date=(Day, says("The day.", "2026-01-31")),
)
_FIELDS: dict[str, Any] = {
    "from": (Day, says("The first day.", "2026-01-31")),
    "to": (Day, says("The last day.", "2026-01-31")),
    "days": (list[StatementDay], says("Each day, in order, also those on which nothing moved the balance.")),
    "total": (lines.model, says("All days together.")),
}
Statement = create_model("Statement", __doc__="What moved the balance, day by day.", **_FIELDS)
