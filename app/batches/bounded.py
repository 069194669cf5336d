"""Accepting the sends of keys with bounds, by a way of their own: the sends of all other keys pay nothing for them."""

from collections.abc import Mapping, Sequence
from datetime import UTC

from sqlalchemy import Connection

from app.batches import accept as acceptance
from app.batches import key_limits
from app.batches.accept import Acceptance, Send
from app.batches.key_limits import KeyInUse
from app.errors import InsufficientScope, InvalidKey, PointsError
from app.values.key_bounds import SEND

Outcome = Acceptance | PointsError | None


class DayIsOver(Exception):
    """A batch would not count on the day that is locked, since that has just ended: roll back, and accept again."""


def accept(connection: Connection, sends: Sequence[Send]) -> list[Outcome]:
    """Write a batch for each permitted send of a key with bounds; return the outcomes in the order of the sends.

    They are those of `app.batches.accept.accept`, and also `InsufficientScope` and `KeyLimit`. A key without bounds is
    an `InvalidKey` here. A send that is answered with an earlier batch takes nothing of its key's day.

    Raises:
        DayIsOver: nothing may be committed.
        DBAPIError: as there.
    """
    keys = key_limits.lock(connection, {_hash(send) for send in sends})
    outcomes: list[Outcome] = [_refusal(keys.get(_hash(send))) for send in sends]
    fresh = _decide(connection, sends, keys, outcomes)
    written = acceptance.accept_bounded(connection, [sends[index] for index in fresh])
    for index, outcome in zip(fresh, written, strict=True):
        key = keys[_hash(sends[index])]
        if not isinstance(outcome, Acceptance) or outcome.existed:
            key.untake(sends[index].request.required)
        elif not key.counts_on(outcome.created_at.astimezone(UTC).date()):
            raise DayIsOver
        outcomes[index] = outcome
    key_limits.write(connection, keys.values())
    return outcomes


def _hash(send: Send) -> bytes:
    assert isinstance(send.sender, bytes), "a member has no bounds"
    return send.sender


def _refusal(key: KeyInUse | None) -> PointsError | None:
    if key is None:
        return InvalidKey()
    return None if key.bounds.allow((SEND,)) else key.of_organization(InsufficientScope(SEND))


def _decide(
    connection: Connection, sends: Sequence[Send], keys: Mapping[bytes, KeyInUse], outcomes: list[Outcome]
) -> list[int]:
    """Look which permitted sends would make a batch, and take its points; return those that may make it.

    The second of two sends with the same idempotency key keeps None: it is to ask again, and finds the first's batch.
    """
    permitted = [index for index, outcome in enumerate(outcomes) if outcome is None]
    found = acceptance.look(connection, [sends[index] for index in permitted])
    fresh: list[int] = []
    names: set[tuple[int, bool, str | int]] = set()
    for index, outcome in zip(permitted, found, strict=True):
        send, key = sends[index], keys[_hash(sends[index])]
        name = (key.row.organization_id, key.row.sandbox, send.idempotency_key or index)
        if outcome is not None or name not in names:
            outcomes[index] = outcome or key.take(send.request.required)
            if outcomes[index] is None:
                names.add(name)
                fresh.append(index)
    return fresh
