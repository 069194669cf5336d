"""Processes die while the platform signs people up: each call is made again until it is answered, and counts once."""

import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.crash import faults_of_processes, faults_of_servers
from tests.crash import planted as places
from tests.crash.calls import Answer, Cut, Unsent, call
from tests.crash.intents import Intent
from tests.crash.scene import Scene
from tests.crash.sending import GIVES_UP_AFTER_S, RETRIES_AFTER_S
from tests.crash.undoing import Undo, Undoer

_USERS = "/v1/platform/users"
_DEATHS = (
    faults_of_processes.a_worker_child_is_killed,
    faults_of_processes.a_whole_worker_is_killed,
    faults_of_servers.postgresql_is_stopped_at_once,
    faults_of_servers.a_backend_of_postgresql_is_killed,
)
_DIE = 4


def web_is_killed_between_a_claim_and_the_answer(scene: Scene) -> None:
    """The sign-up is made again: it is answered with the same user, and nothing is claimed twice."""
    email, place = _address(), places.WEB_AFTER_CLAIM_BEFORE_ANSWER
    _send(scene, email, 40)
    with ThreadPoolExecutor(1) as pool:
        scene.service.pauses.arm(place)
        signing_up = pool.submit(_register, scene, email)
        scene.kill_who_comes_to(place)
        answer = signing_up.result()
    user, claimed = answer.body["data"], answer.body["additional_data"]["claimed"]
    if (answer.status, claimed["amount"], user["balance"]) != (200, 40, 40):
        scene.intents.violation(f"a sign-up that was made again was answered {answer.status}: {answer.raw!r}")
    _has(scene, user["id"], [("credit", 40)])


def people_sign_up_while_workers_and_postgresql_die(scene: Scene) -> None:
    """The whole story of a user, again and again, until enough has died."""
    with _dying(scene) as over:
        while not over.is_set():
            _tell_a_story(scene)
    _tell_a_story(scene)


@contextmanager
def _dying(scene: Scene) -> Iterator[threading.Event]:
    """Let workers and PostgreSQL die at random moments; the event is set when enough have."""
    over = threading.Event()

    def kill() -> None:
        try:
            for _ in range(_DIE):
                scene.send(scene.new_intent())  # What died before is back.
                scene.lasts(0.05, 0.8)
                scene.random.choice(_DEATHS)(scene)
        finally:
            over.set()

    with ThreadPoolExecutor(1) as pool:
        dying = pool.submit(kill)
        yield over
        dying.result()


def _tell_a_story(scene: Scene) -> None:
    email, moved = _address(), _address()
    first = _send(scene, email, 40)
    user = _register(scene, email).body["data"]
    _is(scene, "the user who signed up", user["balance"], 40)
    again = _register(scene, email)
    _is(scene, "the same sign-up again", (again.status, again.body["data"]), (200, user))
    second = _send(scene, email, 5)
    _has(scene, user["id"], [("credit", 5), ("credit", 40)])
    third = _send(scene, moved, 7)
    changed = _ask(scene, "PATCH", f"{_USERS}/{user['id']}", {"email": moved}).body["data"]
    _is(scene, "the user of another address", (changed["email"], changed["balance"]), (moved, 52))
    undo = Undo(reason=f"story {email}", of=first, key=email, places=None, amount=15)
    Undoer(scene.sender, scene.intents).reverse(scene.parties.probe, undo)
    what_is_left = [("reversal", -15), ("credit", 7), ("credit", 5), ("credit", 40)]
    _has(scene, user["id"], what_is_left)
    erased = _ask(scene, "POST", f"{_USERS}/{user['id']}/erase").body["data"]
    again = _ask(scene, "POST", f"{_USERS}/{user['id']}/erase")
    _is(scene, "the same erasure again", again.body["data"], erased)
    _has(scene, user["id"], what_is_left)
    name = f"erased-{user['id']}"
    for intent in (first, second, third):
        intent.recipients = [name]
        intent.issued = [row._replace(email=name) for row in intent.issued]


def _address() -> str:
    return f"{uuid.uuid4().hex}@example.com"


def _send(scene: Scene, email: str, amount: int) -> Intent:
    """Send until it is known that it was issued."""
    intent = scene.new_intent(recipients=[email])
    intent.amount = amount
    scene.send(intent)
    return intent


def _register(scene: Scene, email: str) -> Answer:
    return _ask(scene, "POST", _USERS, {"email": email, "first_name": "Ada", "last_name": "Lovelace"})


def _has(scene: Scene, user_id: int, meant: list[tuple[str, int]]) -> None:
    """Require the entries of a user, newest first, and that they add up to the balance."""
    told = _ask(scene, "GET", f"{_USERS}/{user_id}/entries").body["data"]["entries"]
    _is(scene, "the entries", [(one["type"], one["amount"]) for one in told], meant)
    balance = _ask(scene, "GET", f"{_USERS}/{user_id}").body["data"]["balance"]
    _is(scene, "the balance", balance, sum(amount for _, amount in meant))


def _is(scene: Scene, what: str, told: object, meant: object) -> None:
    if told != meant:
        scene.intents.violation(f"{what}: {told} instead of {meant}")


def _ask(scene: Scene, method: str, path: str, body: object = None) -> Answer:
    """Make a call as the platform, again until it is answered with a success."""
    deadline = time.monotonic() + GIVES_UP_AFTER_S
    while True:
        try:
            answer = call(scene.service.web_port, method, path, key=scene.parties.platform, body=body)
        except (Unsent, Cut):
            answer = None
        if answer is not None and answer.status < 400:
            return answer
        assert answer is None or answer.status == 503, answer.raw
        assert time.monotonic() < deadline, f"{method} {path} was not answered"
        time.sleep(RETRIES_AFTER_S)
