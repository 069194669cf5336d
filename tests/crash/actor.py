"""Who acts meanwhile: a thread that does one thing after another, until it is stopped."""

import threading
from collections.abc import Callable


class Actor(threading.Thread):
    """Acts again and again, each time after a pause."""

    def __init__(self, name: str, pause_s: Callable[[], float]) -> None:
        super().__init__(name=name, daemon=True)
        self._pause_s = pause_s
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.wait(self._pause_s()):
            self.act()

    def act(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """Let it end what it does, and begin nothing more."""
        self._stopping.set()
