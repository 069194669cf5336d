"""Faults of delivery and of time: tasks that come often, late and in disorder, a poisonous batch, wrong clocks."""

import contextlib
import threading

from celery import Celery

from app.messaging.jobs import ISSUE, QUEUE
from tests.crash import planted as places
from tests.crash import poison
from tests.crash.clock import Clock
from tests.crash.intents import Known
from tests.crash.parties import REGISTERED
from tests.crash.scene import Scene

_RECENT = "SELECT id, organization_id, recipient_count FROM batches ORDER BY id DESC LIMIT 30"
_HOUR_S = 3_600


def each_task_is_delivered_three_times_late_and_in_disorder(scene: Scene) -> None:
    deliveries = [row._mapping for row in scene.ask(_RECENT)] * 3
    scene.random.shuffle(deliveries)
    broker = Celery("crash", broker=scene.service.valkey.url(), set_as_current=False)
    with contextlib.closing(broker), broker.connection_for_write() as connection:
        for batch in deliveries:
            arguments = {
                "organization_id": batch["organization_id"],
                "batch_id": batch["id"],
                "recipients": batch["recipient_count"],
            }
            countdown = scene.random.choice((None, scene.random.uniform(0, 2)))
            broker.send_task(ISSUE, kwargs=arguments, queue=QUEUE, countdown=countdown, connection=connection)


def the_visibility_timeout_is_shorter_than_a_drain(scene: Scene) -> None:
    """Every message is given to another worker while the first still works on it."""
    service = scene.service
    workers = [part.name for part in service.workers]
    service.restart_with({places.VISIBILITY_TIMEOUT_S: "0.5", places.DRAIN_LASTS_S: "2"}, *workers)
    scene.wait_for("a message is given to a second worker", lambda: _given_twice(scene))
    service.restart_with({}, *workers)
    (service.pauses.folder / places.DELIVERIES).unlink()


def _given_twice(scene: Scene) -> bool:
    """Tell whether a task was begun twice: each worker notes the id of what it begins."""
    notes = scene.service.pauses.folder / places.DELIVERIES
    ids = notes.read_text().split() if notes.exists() else []
    return len(set(ids)) < len(ids)


def a_batch_is_poisonous(scene: Scene) -> None:
    """PostgreSQL refuses one of its rows, until somebody mends it: that batch waits, the others do not."""
    _poison(scene, ends_session=False)


def a_batch_ends_its_connection(scene: Scene) -> None:
    """PostgreSQL ends the session that writes one of its rows, which looks like an outage: as above all the same."""
    _poison(scene, ends_session=True)


def _poison(scene: Scene, *, ends_session: bool) -> None:
    with scene.service.connection() as connection:
        poison.begin(connection, ends_session=ends_session)
    poisonous = scene.new_intent(recipients=[REGISTERED[0], poison.RECIPIENT])
    caller = threading.Thread(target=scene.send, args=(poisonous,), daemon=True)
    try:
        caller.start()
        for _ in range(3):
            scene.send(scene.new_intent())  # Of the same organization, behind the poisonous one.
        postponed = "SELECT 1 FROM batches WHERE label = %(label)s AND failures > 0"
        scene.wait_for("the poisonous batch is put aside", lambda: scene.ask(postponed, label=poisonous.label))
        if poisonous.known is Known.ISSUED:
            scene.intents.violation("a batch was issued that PostgreSQL refused")
    finally:
        with scene.service.connection() as connection:
            poison.cure(connection)
    caller.join()


def clocks_are_an_hour_apart(scene: Scene) -> None:
    """The workers' clocks are an hour or two off beat's, and perhaps web's; only PostgreSQL's clock may matter."""
    _set_clocks_apart(scene, scene.random.choice((_HOUR_S, -_HOUR_S, 2 * _HOUR_S, -2 * _HOUR_S)))


def clocks_are_a_year_apart(scene: Scene) -> None:
    """As above, by 400 days."""
    _set_clocks_apart(scene, scene.random.choice((400, -400)) * 24 * _HOUR_S)


def _set_clocks_apart(scene: Scene, off_s: int) -> None:
    service, clock = scene.service, Clock(scene.service.pauses.folder / "clock")
    wrong = [*(part.name for part in service.workers), *scene.random.choice((["web"], []))]
    clock.set(off_s)
    service.restart_with(clock.environment(), *wrong)
    scene.send(scene.new_intent())
    scene.queue_without_a_message()
    scene.wait_for("a sweep brings a batch without a message", lambda: not scene.is_queued())
    service.restart_with({}, *wrong)


def beat_is_killed(scene: Scene) -> None:
    """The workers sweep without it."""
    with scene.started_again(scene.service.part("beat")) as beat:
        beat.kill_group()
    scene.queue_without_a_message()
