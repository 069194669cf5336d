"""A follower reads every log as a caller does who keeps the last sequence; each must tell what was answered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, text

from tests.crash.actor import Actor
from tests.crash.calls import Answer, Cut, Unsent, call
from tests.crash.intents import Intents, Known
from tests.crash.parties import Parties

_LOOKS_EVERY_S = 1.0
_PAGE = 500


@dataclass
class Log:
    """What was read of the log of an organization in one mode: the ids of its events, in the order of the log."""

    organization_id: int
    sandbox: bool
    key: str
    ids: list[str] = field(default_factory=list)
    # By type and subject of the events of batches and reversals: the points of each.
    told: dict[tuple[str, int], list[int | None]] = field(default_factory=dict)

    def take(self, events: Sequence[dict[str, Any]]) -> None:
        """Keep events that go on where the last ones ended."""
        self.ids += [event["id"] for event in events]
        for event in events:
            for noun in ("batch", "reversal"):
                if noun in event["data"]:
                    subject = event["data"][noun]
                    place = self.told.setdefault((event["type"], subject[f"{noun}_id"]), [])
                    place.append(subject["amount"])


class Follower(Actor):
    """Reads all logs in turn. A gap, an event that comes twice, or a refusal is a violation."""

    def __init__(self, port: int, parties: Parties, intents: Intents) -> None:
        super().__init__("follower", lambda: _LOOKS_EVERY_S)
        self._port, self._intents = port, intents
        self.logs = [
            Log(party.id, sandbox, party.key(sandbox=sandbox))
            for party in (*parties.senders, parties.probe)
            for sandbox in (False, True)
        ]

    def act(self) -> None:
        """Read what is new in each log; while the service is away, nothing."""
        for log in self.logs:
            while (answer := self._answer(log)) is not None and self._take(log, answer) == _PAGE:
                pass

    def _answer(self, log: Log) -> Answer | None:
        try:
            return call(self._port, "GET", f"/v1/events?after={len(log.ids)}&limit={_PAGE}", key=log.key)
        except (Unsent, Cut, ValueError):  # ValueError: what answers while web starts again is no JSON.
            return None

    def _take(self, log: Log, answer: Answer) -> int:
        """Keep the events of an answer and return how many; they must go on where the last ones ended."""
        if answer.status != 200:
            if answer.status < 500:
                self._intents.violation(f"the log of organization {log.organization_id} answered {answer.status}")
            return 0
        events = answer.body["data"]["events"]
        expected = range(len(log.ids) + 1, len(log.ids) + 1 + len(events))
        if [event["sequence"] for event in events] != list(expected):
            self._intents.violation(f"the log of organization {log.organization_id} does not go on at {expected}")
        log.take(events)
        return len(events)

    def differences(self, connection: Connection) -> list[str]:
        """Return a sentence for each log that is not to the last event what was read."""
        found = []
        for log in self.logs:
            rows = connection.execute(_STORED, {"id": log.organization_id, "sandbox": log.sandbox})
            stored = list(rows.scalars())
            if stored != log.ids:
                read = f"{len(log.ids)} events were read, and {len(stored)} are there"
                found.append(f"of the log of organization {log.organization_id} {read}")
        return found

    def told_otherwise(self) -> list[str]:
        """Return a sentence for each answer that its log does not tell once, under its type and with its points."""
        told = {(log.organization_id, log.sandbox): log.told for log in self.logs}
        return [
            f"{what} is told as {seen} instead of {amounts}"
            for what, log, event, amounts in _answers(self._intents)
            if (seen := told[log].get(event, [])) != amounts
        ]


def _answers(intents: Intents) -> Iterator[tuple[str, tuple[int, bool], tuple[str, int], list[int | None]]]:
    """Yield each answer with its log, the type and subject of its event, and the points of each event that is due."""
    for intent in intents.all():
        what, log = f"{intent.known.value} send {intent.label}", (intent.organization_id, intent.sandbox)
        if intent.known in (Known.ISSUED, Known.CANCELLED) and intent.batch_id is not None:
            is_issued = intent.known is Known.ISSUED
            yield what, log, ("batch.issued", intent.batch_id), [intent.total] if is_issued else []
            yield what, log, ("batch.cancelled", intent.batch_id), [] if is_issued else [None]
    for undo in intents.undos():
        if undo.known is Known.ISSUED and undo.reversal_id is not None:
            log, points = (undo.of.organization_id, undo.of.sandbox), sum(points for _, points, _ in undo.taken)
            yield f"reversal {undo.reason}", log, ("reversal.issued", undo.reversal_id), [points] if points else []


_STORED = text("""
    SELECT 'evt_' || id FROM (
        SELECT id, sequence FROM events WHERE organization_id = :id AND sandbox = :sandbox
        UNION ALL SELECT id, NULL FROM unnumbered_events WHERE organization_id = :id AND sandbox = :sandbox
    ) told ORDER BY sequence
""")
