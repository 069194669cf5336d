"""The limits of a key: the points of one batch, and of the batches that are accepted on one day in UTC.

The limit of a day is exact: whoever accepts sends of the key locks the row of its day first, and counts each new batch
with all its points. What is refused, cancelled or not paid of them is given back in the transaction that decides it, in
rows of their own: no drain and no cancellation waits for the row of a day. A batch counts on the day of its
`created_at`, also when it is issued later.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, text

from app.api_keys import Caller
from app.batches.batch import points_of
from app.batches.errors import KeyLimit
from app.errors import PointsError
from app.events import event_types, log
from app.postgres.database import fetch_all
from app.values.key_bounds import Bounds

Error = TypeVar("Error", bound=PointsError)


def refusal(bounds: Bounds, required: int, *, day: date | None = None, used: int = 0) -> KeyLimit | None:
    """Return why a key may not send a batch of these points; None if it may.

    Args:
        day: the day that it would count on, if the key has a daily limit.
        used: what the key has used of that day.
    """
    return _refusal_of_batch(bounds, required) or _refusal_of_day(bounds, required, day=day, used=used)


def _refusal_of_batch(bounds: Bounds, required: int) -> KeyLimit | None:
    if bounds.batch_limit is None or required <= bounds.batch_limit:
        return None
    return KeyLimit(
        f"The key may send at most {bounds.batch_limit} points in one batch, but this one is for {required}."
    )


def _refusal_of_day(bounds: Bounds, required: int, *, day: date | None, used: int) -> KeyLimit | None:
    if bounds.daily_limit is None or used + required <= bounds.daily_limit:
        return None
    return KeyLimit(
        f"The key may send at most {bounds.daily_limit} points a day (UTC): on {day} it has used {used}, and this batch"
        f" is for {required}."
    )


def refusal_now(connection: Connection, who: Caller, required: int) -> KeyLimit | None:
    """Return why a caller's key may not send a batch of these points now, as `refusal`. It locks nothing."""
    if who.bounds.daily_limit is None:
        return refusal(who.bounds, required)
    parameters = {"id": who.api_key_id, "organization_id": who.organization.id, "sandbox": who.sandbox}
    day, used = connection.execute(_USED_NOW, parameters).one()
    return refusal(who.bounds, required, day=day, used=int(used))


_USED_NOW = text("""
    SELECT today.day, coalesce((SELECT used FROM key_days WHERE (api_key_id, key_days.day) = (:id, today.day)), 0)
                      - coalesce((SELECT sum(points) FROM points_given_back g
                                  WHERE (g.api_key_id, g.day) = (:id, today.day)), 0)
    FROM (SELECT CAST(time_of(CAST(:organization_id AS bigint), CAST(:sandbox AS boolean)) AT TIME ZONE 'UTC' AS date)
                     AS day) today
""")


class KeyRow(NamedTuple):
    """A usable key with bounds, and the day that its sends count on; its `used` is None without a daily limit."""

    id: int
    hash: bytes
    organization_id: int
    sandbox: bool
    scopes: Sequence[str] | None
    batch_limit: int | None
    daily_limit: int | None
    day: date
    used: int | None
    limit_was_reached: bool | None


@dataclass(slots=True)
class KeyInUse:
    """A key whose sends are accepted in this transaction.

    `used` counts the points of its day with them; `stored` is what the locked row says. `reached` tells of the first
    send that its limit a day has refused.
    """

    row: KeyRow
    bounds: Bounds
    stored: int
    used: int
    reached: dict[str, Any] | None = None

    def take(self, required: int) -> KeyLimit | None:
        """Count the points of a batch, or return why the key may not send it."""
        over = _refusal_of_batch(self.bounds, required)
        if over is None and self.bounds.daily_limit is not None:
            over = _refusal_of_day(self.bounds, required, day=self.row.day, used=self.used)
            if over is None:
                self.used += required
            else:
                self.reached = self.reached or {"used": self.used, "asked": required}
        return None if over is None else self.of_organization(over)

    def untake(self, required: int) -> None:
        """Do not count a batch that was not written."""
        if self.bounds.daily_limit is not None:
            self.used -= required

    def counts_on(self, day: date) -> bool:
        """Tell whether a batch of this day counts on the day that is locked."""
        return self.bounds.daily_limit is None or day == self.row.day

    def of_organization(self, error: Error) -> Error:
        """Return an error that tells the log whose request is refused."""
        error.organization_id = self.row.organization_id
        return error


def lock(connection: Connection, key_hashes: Collection[bytes]) -> dict[bytes, KeyInUse]:
    """Return the keys with bounds that these hashes name, by hash; lock the days of those with a daily limit.

    The rows are locked in the order of the keys, so that two groups cannot deadlock. `SCHEDULES` is taken before them,
    and after them nothing is waited for but others who insert the same idempotency keys, in the same order.
    """
    rows = [KeyRow._make(row) for row in fetch_all(connection, _LOCK, {"hashes": list(key_hashes)})]
    given_back = _take_off(connection, [row for row in rows if row.used is not None])
    keys = {}
    for row in rows:
        bounds, stored = Bounds(row.scopes, None, row.batch_limit, row.daily_limit), row.used or 0
        keys[row.hash] = KeyInUse(row, bounds, stored, stored - given_back.get(row.id, 0))
    return keys


# LIMIT 1: each key is looked up by itself, whatever the plan. A row that is there is written to be locked.
_LOCK = b"""
    WITH keys AS MATERIALIZED (
        SELECT k.id, k.hash, k.organization_id, k.sandbox, k.scopes, k.batch_limit, k.daily_limit,
               ((clock_timestamp() + CASE WHEN k.sandbox THEN o.sandbox_ahead ELSE interval '0' END)
                AT TIME ZONE 'UTC')::date AS day
        FROM unnest(%(hashes)s::bytea[]) AS hashes (hash)
        CROSS JOIN LATERAL (
            SELECT * FROM api_keys
            WHERE api_keys.hash = hashes.hash AND is_bounded AND revoked_at IS NULL
              AND (expires_at > clock_timestamp()) IS NOT FALSE LIMIT 1
        ) k
        CROSS JOIN LATERAL (SELECT sandbox_ahead FROM organizations WHERE id = k.organization_id LIMIT 1) o
    ), days AS (
        INSERT INTO key_days (api_key_id, day, daily_limit)
        SELECT id, day, daily_limit FROM keys WHERE daily_limit IS NOT NULL ORDER BY id
        ON CONFLICT (api_key_id, day) DO UPDATE SET used = key_days.used
        RETURNING api_key_id, used, limit_reached_at IS NOT NULL AS limit_was_reached
    )
    SELECT keys.*, d.used, d.limit_was_reached FROM keys LEFT JOIN days d ON d.api_key_id = keys.id
"""


def _take_off(connection: Connection, rows: Sequence[KeyRow]) -> dict[int, int]:
    """Take what was given back off locked days; return the points by key. A statement after the lock sees all of it."""
    if not rows:
        return {}
    parameters = {"ids": [row.id for row in rows], "days": [row.day for row in rows]}
    points: dict[int, int] = {}
    for key_id, given_back in fetch_all(connection, _TAKE_OFF, parameters):
        points[key_id] = points.get(key_id, 0) + given_back
    return points


_TAKE_OFF = b"""
    DELETE FROM points_given_back g USING unnest(%(ids)s::bigint[], %(days)s::date[]) AS locked (id, day)
    WHERE (g.api_key_id, g.day) = (locked.id, locked.day)
    RETURNING g.api_key_id, g.points
"""


def write(connection: Connection, keys: Collection[KeyInUse]) -> None:
    """Write what locked days have come to, and, once a day, the event that a key has reached its limit."""
    for key in keys:
        is_news = key.reached is not None and not key.row.limit_was_reached
        if key.used == key.stored and not is_news:
            continue
        values = {"id": key.row.id, "day": key.row.day, "used": key.used, "is_news": is_news}
        connection.execute(_WRITE, values)
        if is_news:
            row = key.row
            payload = {"id": row.id, "sandbox": row.sandbox, "daily_limit": row.daily_limit}
            data = {"key": payload, "day": row.day.isoformat(), **(key.reached or {})}
            log.write(connection, event_types.KEY_LIMIT_REACHED, row.organization_id, sandbox=row.sandbox, data=data)


_WRITE = text("""
    UPDATE key_days SET used = :used,
        limit_reached_at = CASE WHEN :is_news THEN clock_timestamp() ELSE limit_reached_at END
    WHERE (api_key_id, day) = (:id, :day)
""")


def give_back(connection: Connection, organization_id: int, batch_ids: Sequence[int]) -> None:
    """Give back what an organization's batches, refused, cancelled or not paid in full, have taken of keys' days."""
    connection.execute(_GIVE_BACK, {"organization_id": organization_id, "batch_ids": list(batch_ids)})


_GIVE_BACK = text(f"""
    INSERT INTO points_given_back (api_key_id, day, points)
    SELECT b.api_key_id, CAST(b.created_at AT TIME ZONE 'UTC' AS date),
           {points_of("b.")} - coalesce(b.debited_amount, 0)
    FROM unnest(CAST(:batch_ids AS bigint[])) AS short (id)
    CROSS JOIN LATERAL (SELECT * FROM batches
                        WHERE batches.id = short.id AND organization_id = :organization_id LIMIT 1) b
    CROSS JOIN LATERAL (SELECT FROM api_keys WHERE api_keys.id = b.api_key_id AND daily_limit IS NOT NULL LIMIT 1) k
""")
