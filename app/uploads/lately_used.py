"""The points and labels that an organization's members lately gave to the lists that they have sent."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

# Of the newest lists, as many different values as a person takes in at a glance.
_LISTS_MAX = 200
_OFFERED_MAX = 10


class LatelyUsed(NamedTuple):
    """Each value once, the last used first."""

    amounts: Sequence[int]
    labels: Sequence[str]


def lately_used(connection: Connection, organization_id: int, *, sandbox: bool) -> LatelyUsed:
    scope = {"organization_id": organization_id, "sandbox": sandbox, "lists_max": _LISTS_MAX}
    rows: Any = connection.execute(_LATELY, scope).all()
    return LatelyUsed(_different(row.amount for row in rows), _different(row.label for row in rows))


def _different(values: Any) -> list[Any]:
    return list(dict.fromkeys(value for value in values if value is not None))[:_OFFERED_MAX]


_LATELY = text("""
    SELECT amount, label FROM uploads
    WHERE organization_id = :organization_id AND sandbox = :sandbox AND sent_at IS NOT NULL
    ORDER BY id DESC LIMIT :lists_max
""")
