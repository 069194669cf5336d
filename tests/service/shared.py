"""One service for all processes of a run: started by the first that asks for it, ended by the last that has it."""

import contextlib
import fcntl
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from tests.ports import free_port
from tests.service.run import alone
from tests.service.up import Service

S = TypeVar("S", bound=Service)


@contextlib.contextmanager
def shared(folder: Path, new: Callable[..., S], **settings: str) -> Iterator[S]:
    """Give the service of a folder that all processes of a run know, and end it if no other has it any more."""
    folder.mkdir(exist_ok=True)
    # A lock is given back by whoever dies, so that nobody waits for it in vain.
    with (folder / "users.lock").open("a") as users:
        with whole(folder):
            fcntl.flock(users, fcntl.LOCK_SH)
            service = new(folder / "data", **settings)
            service.listen_at(*_ports(folder))
            if service.pid is None:
                service.start()
        try:
            yield service
        finally:
            with whole(folder):
                fcntl.flock(users, fcntl.LOCK_UN)
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    try:
                        service.end()
                    finally:
                        service.close()


def whole(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Wait until nobody else starts, ends or breaks the service of this folder."""
    return alone(folder, "service")


def _ports(folder: Path) -> tuple[int, int]:
    chosen = folder / "ports.json"
    if not chosen.exists():
        chosen.write_text(json.dumps([free_port(), free_port()]))
    web, flower = json.loads(chosen.read_text())
    return web, flower
