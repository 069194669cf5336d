"""Faults of the two servers: PostgreSQL and the broker, killed, frozen, emptied, or out of room."""

import os
import signal
from contextlib import ExitStack

from redis import Redis

from app.local import ports
from tests.crash.scene import Scene

# `make soak` and the short runs have little time; `CRASH_AWAY_S=120` is an outage as they are met.
AWAY_S = float(os.environ.get("CRASH_AWAY_S", "6"))

_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'points' AND pid <> pg_backend_pid()"


def the_broker_is_killed_and_comes_back_empty(scene: Scene) -> None:
    valkey = scene.service.part("valkey")
    valkey.hold_down(signal.SIGKILL)
    scene.send_is_taken()
    scene.service.empty_broker()
    valkey.start()


def the_broker_is_killed_and_comes_back_full(scene: Scene) -> None:
    valkey = scene.service.part("valkey")
    valkey.hold_down(signal.SIGKILL)
    scene.send_is_taken()
    valkey.start()


def the_broker_and_beat_are_gone_for_long(scene: Scene) -> None:
    """PostgreSQL is all that must be up: each send is answered 201 all the same."""
    valkey, beat = scene.service.part("valkey"), scene.service.part("beat")
    for part in (valkey, beat):
        part.hold_down(signal.SIGKILL)
    scene.sends_are_answered(for_s=AWAY_S)
    for part in (valkey, beat):
        part.start()


def the_broker_is_frozen(scene: Scene) -> None:
    """It accepts connections, as its kernel does for it, and never answers."""
    valkey = scene.service.part("valkey")
    valkey.send(signal.SIGSTOP)
    try:
        scene.send_is_taken()
        scene.lasts(0, 2)
    finally:
        valkey.send(signal.SIGCONT)


def the_broker_refuses_to_write(scene: Scene) -> None:
    """It became somebody's replica, or its memory is full; it answers, and takes nothing."""
    deaths = [worker.deaths for worker in scene.service.workers]
    with Redis.from_url(scene.service.valkey.url()) as valkey:
        for how, back in (
            (("REPLICAOF", ports.HOST, 1), ("REPLICAOF", "NO", "ONE")),
            (("CONFIG", "SET", "maxmemory", 1), ("CONFIG", "SET", "maxmemory", 0)),
        ):
            valkey.execute_command(*how)
            try:
                scene.send_is_taken()
                scene.send(scene.new_intent())  # A worker issues by itself meanwhile.
                scene.lasts(0, 2)
            finally:
                valkey.execute_command(*back)
    scene.send(scene.new_intent())
    if [worker.deaths for worker in scene.service.workers] != deaths:
        scene.intents.violation("a worker died because its broker refused to write")


def postgresql_is_stopped_at_once(scene: Scene) -> None:
    with scene.started_again(scene.service.part("postgresql")) as postgresql:
        postgresql.send(signal.SIGQUIT)  # PostgreSQL's word for an immediate stop: no checkpoint, recovery at start.


def a_backend_of_postgresql_is_killed(scene: Scene) -> None:
    """The server then ends every other backend as well, and recovers from its log."""
    with scene.service.superuser() as connection:
        pids = [row[0] for row in connection.execute(_BACKENDS)]
    recoveries = _recoveries(scene)
    pid = scene.random.choice(pids)  # Our own connections are among them, so there is always one.
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    scene.wait_for("PostgreSQL ends every backend and recovers", lambda: _recoveries(scene) > recoveries)


def _recoveries(scene: Scene) -> int:
    """Return how often the server has said that it starts over."""
    return (scene.service.logs / "postgresql.log").read_text(errors="replace").count("reinitializing")


def backends_of_postgresql_are_terminated(scene: Scene) -> None:
    for _ in range(scene.random.randint(1, 4)):
        with scene.service.superuser() as connection:
            for row in connection.execute(_BACKENDS).fetchall():
                if scene.random.random() < 0.5:
                    connection.execute("SELECT pg_terminate_backend(%s)", row)
        scene.lasts(0.02, 0.3)


def the_disk_is_full(scene: Scene) -> None:
    """Both servers write to it. Nothing is promised while it is full, but that nothing is lost or half done."""
    with ExitStack() as full:
        for disk in scene.service.disks:
            full.enter_context(disk.full())
        scene.lasts(0.5, 1.5)
