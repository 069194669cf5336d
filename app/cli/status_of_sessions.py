"""What `points status` says of the sessions in PostgreSQL: their settings, and the standby that answers long reads."""

from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from app.postgres.standby import State, state_of_standby
from app.settings import settings, without_password
from app.values.numbers import points

READ_ON = "Read on in docs/operating.md at"
_TIMEOUT_S = 1.0


def look_at_standby() -> dict[str, Any]:
    """Return how the standby follows, nothing if there is to be none."""
    state: State | str | None
    try:
        state = state_of_standby(timeout_s=_TIMEOUT_S)
    except SQLAlchemyError:  # Of the primary it is said elsewhere.
        state = "it is not known how far it is, while the primary does not answer"
    if state is None:
        return {}
    standby = {"fault": state} if isinstance(state, str) else {"fault": None, **state._asdict()}
    return {"database_read_url": settings().database_read_url, "standby": standby}


def fault_of_standby(found: dict[str, Any]) -> str | None:
    fault: str | None = found.get("standby", {}).get("fault")
    return fault


def standby_line(found: dict[str, Any]) -> dict[str, str]:
    """Return a line of the standby; nothing if there is to be none."""
    if "standby" not in found:
        return {}
    state = found["standby"]
    behind = state["fault"] or (
        f"PostgreSQL {state['release']}, {state['lag_s']:.0f} s and {points(state['lag_bytes'])} bytes behind"
    )
    return {"Standby": f"{behind}  {without_password(found['database_read_url'])}"}


def settings_line(found: dict[str, Any]) -> dict[str, str]:
    """Return a line of the settings that sessions behind a pooler lack; nothing if they lack none."""
    lacks = [f"{one['name']} is {one['value']} ({one['mend']})" for one in found.get("settings_missing") or ()]
    return {"Settings": f"{'; '.join(lacks)}. {READ_ON} “PgBouncer”."} if lacks else {}
