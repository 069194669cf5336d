"""What `points status` says of the archive: who was erased, and may still be in its files."""

from typing import Any

from sqlalchemy import Connection

from app.erasing import archived
from app.values.numbers import counted

_HOUR_S = 3_600


def look_at_archive(connection: Connection) -> dict[str, Any]:
    """Return the erasures that wait for the archive; None if there are none."""
    waiting = archived.waiting(connection)
    return {"erasures_waiting": waiting and waiting._asdict()}


def archive_line(found: dict[str, Any]) -> dict[str, str]:
    """Return a line of the erasures that wait; nothing if there are none."""
    waiting = found.get("erasures_waiting")
    if waiting is None:
        return {}
    who, where = counted(waiting["users"], "erased user"), counted(waiting["ranges"], "range")
    since = counted(int(waiting["oldest_s"] // _HOUR_S), "hour")
    return {"Archive": f"{who} may be in the files of {where}, since {since}: give `points archive`"}
