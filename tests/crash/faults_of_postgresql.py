"""Faults of what PostgreSQL stands on: its clock, the disks of its data and its log, and the machine it runs on."""

import contextlib
import signal
import time
from collections.abc import Callable

import psycopg

from tests.crash.clock import Clock
from tests.crash.parties import REGISTERED
from tests.crash.scene import Scene

_HOUR_S = 3_600
# How far a clock may seem to be from where it was set: a busy machine takes its time to ask.
_NEAR_S = 600.0
_COMMIT_LASTS_US = 100_000


def the_clock_of_postgresql_is_stepped(scene: Scene) -> None:
    """By two hours and by 400 days, forth or back, while all goes on; then it is right again."""
    service, clock = scene.service, Clock(scene.service.cluster.data_disk.path / "clock")
    steps = [scene.random.choice((1, -1)) * off_s for off_s in (2 * _HOUR_S, 400 * 24 * _HOUR_S)]
    scene.random.shuffle(steps)
    scene.intents.of_a_clock_set = (400,)
    clock.set(0)
    service.restart_postgresql(service.cluster.command(clock))
    scene.send(scene.new_intent())
    for off_s in steps:
        _step(scene, clock, off_s)
        scene.send(scene.new_intent())
        scene.queue_without_a_message()
        scene.wait_for("a sweep brings a batch without a message", lambda: not scene.is_queued())
    _step(scene, clock, 0)
    scene.lasts(0.5, 1.5)
    service.restart_postgresql(service.cluster.command())


def _step(scene: Scene, clock: Clock, off_s: int) -> None:
    clock.set(off_s)
    scene.wait_for(f"the clock is off by {off_s} s", lambda: abs(_off_s(scene) - off_s) < _NEAR_S)


def _off_s(scene: Scene) -> float:
    with scene.service.superuser() as connection:
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert row is not None
    return float(str(row[0])) - time.time()


def the_disk_of_postgresqls_data_is_full(scene: Scene) -> None:
    """Its log of changes and the broker have room, so it stays up and refuses whatever needs more of it."""
    finds = _finds_no_room(scene)

    def grows() -> bool:
        scene.send(scene.new_intent(sandbox=True, recipients=REGISTERED, key=False))
        return finds()

    with scene.service.cluster.data_disk.full():
        scene.wait_for("PostgreSQL finds no room", grows)
        scene.lasts(0.3, 1)


def the_disk_of_postgresqls_log_is_full(scene: Scene) -> None:
    """It ends every session, and comes back once there is room."""
    with scene.service.cluster.log_disk.full():
        finds = _finds_no_room(scene)

        def fills() -> bool:
            with contextlib.suppress(psycopg.Error), scene.service.superuser() as connection:
                # The rest of a segment is not used, so the next send needs a new one.
                connection.execute("SELECT pg_switch_wal()")
                connection.execute("SELECT pg_create_restore_point('full')")
            return finds()

        scene.wait_for("PostgreSQL finds no room", fills)
        scene.lasts(0.3, 1)


def _finds_no_room(scene: Scene) -> Callable[[], bool]:
    """Return what tells whether PostgreSQL has said, since now, that it has no room."""
    path = scene.service.logs / "postgresql.log"
    start = path.stat().st_size

    def finds() -> bool:
        with path.open("rb") as log:
            log.seek(start)
            return b"No space left on device" in log.read()

    return finds


def commits_are_slow(scene: Scene) -> None:
    """As on a disk that takes long to write: each COMMIT waits a tenth of a second before it does."""
    with scene.service.superuser() as connection:
        _set(connection, commit_delay=_COMMIT_LASTS_US, commit_siblings=0)
        scene.send(scene.new_intent())
        scene.lasts(1, 2)
        _set(connection, commit_delay=None, commit_siblings=None)


def a_standby_is_promoted(scene: Scene) -> None:
    """The primary dies under load, and its synchronous standby, which has all that was acknowledged, takes over."""
    service = scene.service
    standby = service.add_standby()
    with service.superuser() as connection:
        _set(connection, synchronous_standby_names="*")
        scene.wait_for("the standby is synchronous", lambda: _is_synchronous(connection))
    scene.send(scene.new_intent())  # Answered once the standby has it, and all that was committed before.
    scene.lasts(0.3, 1.5)
    service.part("postgresql").hold_down(signal.SIGQUIT)
    service.promote(standby)
    scene.send(scene.new_intent())


def _is_synchronous(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    return connection.execute("SELECT FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone() is not None


def _set(connection: psycopg.Connection[tuple[object, ...]], **settings: str | int | None) -> None:
    """Change settings of the running server; None: back to the default."""
    for name, value in settings.items():
        change = f"RESET {name}" if value is None else f"SET {name} = '{value}'"
        connection.execute(f"ALTER SYSTEM {change}".encode())
    connection.execute("SELECT pg_reload_conf()")
