"""Faults of our own processes: workers and web, killed at any moment or at exactly the wrong one."""

import os
import signal

import psutil

from tests.crash import planted as places
from tests.crash.scene import Scene
from tests.integration.workers import pool_of, upkeep_of


def a_worker_child_is_killed(scene: Scene) -> None:
    worker = scene.random.choice(scene.service.workers)
    children = pool_of(psutil.Process(worker.pid))
    if children:  # A worker that is just starting has none yet; then all of it goes.
        os.kill(scene.random.choice(children).pid, signal.SIGKILL)
    else:
        worker.kill_group()


def the_upkeep_of_a_worker_is_killed(scene: Scene) -> None:
    """It is started again, and sweeps as before."""
    for worker in scene.service.workers:
        for upkeep in upkeep_of(psutil.Process(worker.pid)):
            upkeep.kill()
    scene.queue_without_a_message()


def a_whole_worker_is_killed(scene: Scene) -> None:
    with scene.started_again(scene.random.choice(scene.service.workers)) as worker:
        worker.kill_group()


def the_parent_of_a_worker_is_killed(scene: Scene) -> None:
    with scene.started_again(scene.random.choice(scene.service.workers)) as worker:
        os.kill(worker.pid, signal.SIGKILL)


def what_delivers_webhooks_is_killed(scene: Scene) -> None:
    with scene.started_again(scene.service.part("deliveries")) as deliveries:
        deliveries.kill_group()


def web_is_killed_after_commit_and_before_the_answer(scene: Scene) -> None:
    _kill_in(scene, places.WEB_AFTER_COMMIT_BEFORE_ANSWER)


def web_is_killed_between_commit_and_submit(scene: Scene) -> None:
    _kill_in(scene, places.WEB_BETWEEN_COMMIT_AND_SUBMIT)


def a_worker_is_killed_between_lock_and_commit(scene: Scene) -> None:
    _kill_in(scene, scene.random.choice((places.WORKER_AFTER_LOCK, places.WORKER_BEFORE_COMMIT)))


def a_worker_is_killed_between_commit_and_acknowledgement(scene: Scene) -> None:
    _kill_in(scene, scene.random.choice((places.WORKER_AFTER_COMMIT, places.WORKER_BEFORE_ACKNOWLEDGEMENT)))


def _kill_in(scene: Scene, place: str) -> None:
    scene.service.pauses.arm(place)
    scene.kill_who_comes_to(place)


def web_is_asked_to_stop_under_load(scene: Scene) -> None:
    """SIGTERM: whoever was heard is answered 201 or 202; whoever was not left no trace."""
    web = scene.service.web
    scene.send(scene.new_intent())  # Web may still be starting from the fault before.
    with scene.flood() as sent:
        scene.wait_for("calls that are being answered", lambda: len(sent) > 30)
        status = web.hold_down(signal.SIGTERM)
    web.start()
    if status != 0:
        scene.intents.violation(f"web ended with status {status} when asked to stop")
    unanswered = [intent.label for intent in sent if intent.was_unknown]
    for row in scene.ask("SELECT label FROM batches WHERE label = ANY(%(labels)s)", labels=unanswered):
        scene.intents.violation(f"send {row.label} was accepted by a web process that stopped, and cut off")


def workers_are_asked_to_stop_under_load(scene: Scene) -> None:
    """SIGTERM: a drain that runs is finished, every send is answered."""
    worker = scene.random.choice(scene.service.workers)
    place, pauses = places.WORKER_AFTER_LOCK, scene.service.pauses
    scene.send(scene.new_intent())
    with scene.flood(4) as sent:
        scene.wait_for("calls that are being answered", lambda: len(sent) > 10)
        pauses.arm(place)
        scene.wait_for(f"a process at {place}", lambda: pauses.process_in(place))
        if (pid := pauses.process_in(place)) is not None:
            group = os.getpgid(pid)
            worker = next(part for part in scene.service.workers if part.pid == group)
        worker.ask_to_end(signal.SIGTERM)
        pauses.let_go(place)
        status = worker.wait_for_end()
        worker.start()
    if status != 0:
        scene.intents.violation(f"{worker.name} ended with status {status} when asked to stop")
    for intent in sent:
        if intent.was_unknown:
            scene.intents.violation(f"send {intent.label} was not answered while a worker stopped")
