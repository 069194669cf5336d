"""Pauses planted at named places of a process under test: it stops there, and is killed exactly there.

A pause costs nothing until it is armed. Arming one puts a file down; the first process to come by takes
it, says so under its own number, and waits to be killed, or to be let go.
"""

import contextlib
import os
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

FOLDER = "CRASH_FOLDER"
# The places, each named for the moment it stands in.
WEB_BETWEEN_COMMIT_AND_SUBMIT = "web_between_commit_and_submit"
WEB_AFTER_COMMIT_BEFORE_ANSWER = "web_after_commit_before_answer"
WEB_AFTER_CLAIM_BEFORE_ANSWER = "web_after_claim_before_answer"
WORKER_AFTER_LOCK = "worker_after_lock"
WORKER_BEFORE_COMMIT = "worker_before_commit"
WORKER_AFTER_COMMIT = "worker_after_commit"
WORKER_BEFORE_ACKNOWLEDGEMENT = "worker_before_acknowledgement"

# What the environment of a worker may ask of the plants in it, and where it then notes the id of every task it begins.
VISIBILITY_TIMEOUT_S = "CRASH_VISIBILITY_TIMEOUT_S"
DRAIN_LASTS_S = "CRASH_DRAIN_LASTS_S"
DELIVERIES = "deliveries"

# A pause that nobody ends is over after this, so that a test that fails leaves nothing standing.
_WAITS_AT_MOST_S = 60.0


def reach(place: str, *_: object, **__: object) -> None:
    """Stop here if the pause at `place` is armed. What the function that it is planted at was given is no matter."""
    folder = Path(os.environ[FOLDER])
    reached = folder / f"{place}.reached.{os.getpid()}"
    try:
        (folder / f"{place}.armed").rename(reached)
    except FileNotFoundError:
        return
    deadline = time.monotonic() + _WAITS_AT_MOST_S
    while reached.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def plant(owner: object, name: str, what: Callable[..., None], *, after: bool = False) -> None:
    """Have `what` called with its arguments before or after a function that a module or a noun has by this name."""
    function = getattr(owner, name)

    @wraps(function)
    def planted(*arguments: Any, **named: Any) -> Any:
        if not after:
            what(*arguments, **named)
        result = function(*arguments, **named)
        if after:
            what(*arguments, **named)
        return result

    setattr(owner, name, planted)


class Pauses:
    """The harness's side: arms a pause, learns which process stands in it, lets it go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def arm(self, place: str) -> None:
        self.let_go(place)
        (self.folder / f"{place}.armed").touch()

    def process_in(self, place: str) -> int | None:
        """Return the number of the process that stands at `place`, or None while none does."""
        for reached in self.folder.glob(f"{place}.reached.*"):
            return int(reached.suffix[1:])
        return None

    def let_go(self, place: str) -> None:
        """Disarm the pause, and end it where a process stands in it."""
        for file in self.folder.glob(f"{place}.*"):
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
