"""A server of somebody else's beside the service, for as long as a block runs."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.local import ports
from tests.deadline import until
from tests.service.parts import Part


@contextmanager
def beside(
    command: Sequence[str], folder: Path, port: int, environment: Mapping[str, str] = os.environ
) -> Iterator[Part]:
    """Run a server from when it listens at its port; what it says is in the folder, under the name of the program."""
    name = Path(command[0]).name
    part = Part(name, command, environment, folder / f"{name}.log")
    part.start()
    try:
        until(lambda: not ports.is_free(port), f"{name} listens: {folder}")
        yield part
    finally:
        part.hold_down(signal.SIGTERM)
