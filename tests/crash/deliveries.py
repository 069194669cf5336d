"""A receiver of webhooks: every event of every log must come to it, in order, whatever happens."""

import contextlib
from collections.abc import Iterator

from tests.crash.calls import call
from tests.crash.followers import Log
from tests.crash.intents import Intents
from tests.receiver import Receiver


class Deliveries:
    """Receives what the webhooks of all logs bring. An event may come again; one that is passed over is a violation."""

    def __init__(self, port: int, logs: list[Log], intents: Intents) -> None:
        self._port, self._logs, self._intents = port, logs, intents
        self._receiver = Receiver()
        # By organization and mode: the last sequence up to which all has come.
        self._last: dict[tuple[int, bool], int] = {}
        self._ids: dict[tuple[int, bool], dict[int, str]] = {(log.organization_id, log.sandbox): {} for log in logs}
        self._read = 0
        self.repeats = 0

    @property
    def received(self) -> int:
        return self._read

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Make a webhook for each log, which begins where the log ends, and receive while the block runs."""
        with self._receiver.running():
            for log in self._logs:
                body = {"url": self._receiver.url, "types": ["*"]}
                answer = call(self._port, "POST", "/v1/webhooks", key=log.key, body=body)
                assert answer.status == 201, answer.raw
                self._last[log.organization_id, log.sandbox] = answer.body["data"]["position"]
            yield

    def look(self) -> None:
        """Read what has come since the last look."""
        for received in self._receiver.calls[self._read :]:
            self._read += 1
            event = received.event
            log, sequence = (event["organization"]["id"], event["sandbox"]), event["sequence"]
            if self._ids[log].setdefault(sequence, event["id"]) != event["id"]:
                self._intents.violation(f"of log {log}, event {sequence} was delivered as two")
            if sequence <= self._last[log]:
                self.repeats += 1
            elif sequence == self._last[log] + 1:
                self._last[log] = sequence
            else:
                self._intents.violation(f"of log {log}, event {sequence} was delivered after {self._last[log]}")

    def missing(self) -> list[str]:
        """Return a sentence for each log of which not all that was read has been delivered."""
        self.look()
        return [
            f"of the log of organization {log.organization_id} {len(log.ids)} events were read, {last} delivered"
            for log in self._logs
            if (last := self._last[log.organization_id, log.sandbox]) != len(log.ids)
        ] + [
            f"of the log of organization {log.organization_id} event {sequence} was delivered as another"
            for log in self._logs
            for sequence, name in self._ids[log.organization_id, log.sandbox].items()
            if sequence <= len(log.ids) and log.ids[sequence - 1] != name
        ]
