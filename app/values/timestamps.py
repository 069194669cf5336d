"""How a moment is written in every HTTP answer and by every command."""

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """Write a moment as the interface document does: ISO 8601, UTC, exactly six decimals, `Z`."""
    return f"{moment.astimezone(UTC).isoformat(timespec='microseconds')[:26]}Z"
