"""Faults that neighbours and operators cause: a snapshot held open, Redis emptied or full, an organization disabled."""

from redis import Redis

from app import api_keys, organizations
from app.postgres import locks
from app.reversals import accept as reversal_acceptance
from app.reversals.request import ReverseRequest
from app.values.key_hashes import hash_key
from tests.crash.scene import Scene


def a_snapshot_is_held_open(scene: Scene) -> None:
    """Somebody reads for long, as a dump does: nothing that moves points waits for it."""
    with scene.service.superuser() as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM transactions")
        scene.sends_are_answered(for_s=2)
        connection.execute("ROLLBACK")


def redis_is_emptied(scene: Scene) -> None:
    """What was in it is gone while everybody goes on: messages, hints, counts."""
    with Redis.from_url(scene.service.valkey.url()) as valkey:
        for _ in range(3):
            valkey.flushall()
            scene.send_is_taken()
            scene.lasts(0, 0.5)
    scene.queue_without_a_message()


def redis_takes_no_more_clients(scene: Scene) -> None:
    """Somebody else has all its connections: each new one of ours is refused, and the old ones are ended."""
    with Redis.from_url(scene.service.valkey.url()) as valkey:
        before = valkey.config_get("maxclients")["maxclients"]
        valkey.config_set("maxclients", 1)
        valkey.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        try:
            scene.send_is_taken()
            scene.send(scene.new_intent())  # A worker issues by itself meanwhile.
            scene.lasts(0, 2)
        finally:
            valkey.config_set("maxclients", before)


def an_organization_is_disabled_with_reversals_queued(scene: Scene) -> None:
    """What waits is refused and takes nothing; once it is enabled again, the same is taken back."""
    probe, sent = scene.parties.probe, scene.new_intent()
    scene.send(sent)
    with scene.service.connection() as holding:  # No drain comes in between.
        locks.lock_organization(holding, probe.id)
        refused = _queue_reversal(scene, sent.batch_id)
        organizations.change(holding, probe.id, {"is_disabled": True})
    scene.wait_for("the reversal is refused", lambda: _status(scene, refused) == "refused")
    with scene.service.connection() as connection:
        organizations.change(connection, probe.id, {"is_disabled": False})
    done = _queue_reversal(scene, sent.batch_id)
    scene.wait_for("the reversal is done", lambda: _status(scene, done) == "done")


def _queue_reversal(scene: Scene, batch_id: int | None) -> int:
    """Accept a reversal as a front does that dies before it tells a worker: a sweep brings it."""
    request = ReverseRequest(batch_id=batch_id, transaction_ids=None, amount=None, atomic=False, reason="a fault")
    with scene.service.connection() as connection:
        who = api_keys.get_caller(connection, hash_key(scene.parties.probe.live))
        return reversal_acceptance.accept(connection, who, request, None).reversal_id


def _status(scene: Scene, reversal_id: int) -> str:
    [row] = scene.ask("SELECT status FROM reversals WHERE id = %(id)s", id=reversal_id)
    return str(row.status)
