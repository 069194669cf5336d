"""What `points status` says of PostgreSQL's sessions: their settings, the oldest snapshot, and the standby."""

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from app.postgres.snapshots import Snapshot, oldest_snapshot
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


def look_at_snapshots(connection: Connection) -> dict[str, Any]:
    """Return the oldest snapshot, and what to do about it; None if there is none."""
    oldest = oldest_snapshot(connection)
    return {"oldest_snapshot": oldest and {**oldest._asdict(), "remedy": oldest.remedy()}}


def warning_of_snapshot(found: dict[str, Any]) -> list[str]:
    """Return a sentence of a snapshot that is too old: nothing is down, and sends become slower."""
    document = found["oldest_snapshot"]
    if document is None:
        return []
    oldest = Snapshot(**{name: document[name] for name in Snapshot._fields})
    if not oldest.is_too_old:
        return []
    since = f"For {oldest.seconds / 60:.0f} minutes {oldest.who()} has kept vacuum from removing dead rows"
    return [f"{since}, and sends become slower: {oldest.remedy()}. {READ_ON} “A snapshot is held open”."]


def snapshot_line(found: dict[str, Any]) -> str:
    """Return how old the oldest snapshot is."""
    document = found["oldest_snapshot"]
    if document is None:
        return "unknown" if found["queued_batches"] is None else "–"
    return f"{document['seconds']:.0f} s"
