"""What the upkeep has to do, found out by one look."""

from sqlalchemy import Connection, text

from app.batches.awaiting import IS_LATE
from app.batches.queue import WAITING
from app.batches.schedule import IS_TO_RELEASE
from app.ledger.returns import IS_TO_RETURN


def what_is_due(connection: Connection, *, queued_longer_than_s: float) -> dict[str, bool]:
    """Return whether each kind of upkeep has something to do, by its name."""
    return connection.execute(_DUE, {"longer_than_s": queued_longer_than_s}).one()._asdict()


# If the clock of any sandbox is ahead, the kinds that go by time look for themselves.
_IS_AHEAD = "EXISTS (SELECT FROM organizations WHERE sandbox_ahead > '0')"
# Not what is to fold: while an old snapshot is held, its lists are long to look through, and it can wait for 5 s.
_DUE = text(f"""
    SELECT EXISTS ({WAITING}) AS sweep,
           EXISTS (SELECT FROM unnumbered_events) AS number,
           EXISTS (SELECT FROM batches WHERE {IS_TO_RELEASE}) OR {_IS_AHEAD} AS release,
           EXISTS (SELECT FROM batches WHERE {IS_TO_RETURN}) OR {_IS_AHEAD} AS return,
           EXISTS (SELECT FROM batches WHERE {IS_LATE}) OR {_IS_AHEAD} AS reject_unanswered
""")
