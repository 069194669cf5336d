"""A run: the service under load, faults one after another, and the books looked at after each."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

import migrations
from migrations import fingerprint
from tests.crash import parties, poison
from tests.crash.actor import Actor
from tests.crash.callers import Caller
from tests.crash.deliveries import Deliveries
from tests.crash.faults import KINDS, Planned
from tests.crash.followers import Follower
from tests.crash.intents import Intents
from tests.crash.operators import Operator
from tests.crash.scene import Scene
from tests.crash.service import Service
from tests.crash.snapshot import Snapshot
from tests.deadline import comes_true

# A webhook belongs for 20 s to a thread that was killed, and a connection that fell silent is given up after as long.
_PATIENCE_S = 60.0
_CALLERS = 4


@dataclass
class Figures:
    """What a run has seen."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    recovery_s: dict[str, float] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    deadlocks: int = 0


class Run:
    """One service, its callers and operator, from start to stop."""

    def __init__(self, folder: Path, seed: int, *, part: int = 0, recovers_within_s: float = _PATIENCE_S) -> None:
        self.figures = Figures(seed=seed)
        self._callers_seed = f"{seed} part {part}" if part else str(seed)
        self.intents = Intents()
        self._recovers_within_s = recovers_within_s
        self.service = Service(folder)
        self._seen: set[str] = set()
        self._web_log_read = 0
        self.returned = 0
        self.events = 0, 0
        self._callers: list[Caller] = []
        self._actors: list[Actor] = []
        self._stopped = contextlib.ExitStack()

    def start(self) -> None:
        """Start the service, wait until it issues, and let the callers come."""
        self.service.start()
        with self.service.connection() as connection:
            poison.install(connection)
            made = parties.make(connection)
            fingerprint.write(connection, migrations.newest(), migrations.newest())  # What was planted is no fault.
        self.scene = Scene(self.service, made, self.intents)
        self._snapshot = Snapshot(self.service.engine, self.intents)
        self.scene.send(self.scene.new_intent())
        seed = self._callers_seed
        self._callers = [Caller(number, seed, self.service.web_port, made, self.intents) for number in range(_CALLERS)]
        self._follower = Follower(self.service.web_port, made, self.intents)
        self._deliveries = Deliveries(self.service.web_port, self._follower.logs, self.intents)
        self._stopped.enter_context(self._deliveries.running())
        self._actors = [*self._callers, Operator(seed, self.service.engine, made)]
        for actor in (*self._actors, self._follower):
            self._stopped.callback(actor.stop)
            actor.start()

    def pace(self, is_ahead: Callable[[], bool]) -> None:
        """Let the callers send less while `is_ahead()` holds."""
        for caller in self._callers:
            caller.is_ahead = is_ahead

    def undo(self, share: float) -> None:
        """Let the callers take back that share of what they were answered."""
        for caller in self._callers:
            caller.undone = share

    def inject(self, planned: Planned) -> None:
        """Bring one fault about, to its end."""
        self._count_deadlocks()
        self.scene.random.seed(planned.seed)
        KINDS[planned.kind](self.scene)
        self.figures.faults[planned.kind] += 1

    def settle(self, kind: str) -> list[str]:
        """Wait until the service has recovered from a fault, look at the books, and return what is wrong."""
        took_s = self._recover()
        self.figures.recovery_s[kind] = max(took_s, self.figures.recovery_s.get(kind, 0.0))
        return self.look(kind)

    def look(self, kind: str, *, everything: bool = False) -> list[str]:
        """Look at the books in one snapshot; keep and return every breach that was not seen before."""
        self._within_time(time.monotonic(), "PostgreSQL answers", self._moment_is_known)
        self._find_failures()
        self._deliveries.look()
        found = self._snapshot.violations(everything=everything) + self.intents.take_violations()
        self._count_deadlocks()
        new = [sentence for sentence in found if sentence not in self._seen]
        self._seen.update(new)
        self.figures.violations += [f"after {kind}: {sentence}" for sentence in new]
        return new

    def _find_failures(self) -> None:
        """Take note of what web itself calls a fault of ours, and of where in the code it was."""
        with (self.service.logs / "web.log").open("rb") as log:
            log.seek(self._web_log_read)
            whole_lines = log.read().rpartition(b"\n")[0]
        self._web_log_read += len(whole_lines)
        for line in whole_lines.decode(errors="replace").splitlines():
            if '"request_failed"' in line or '"thread_failed"' in line:
                self.intents.violation(f"web failed: {line}")

    def _recover(self) -> float:
        """Wait until everything accepted before this moment is final, and a new send is issued; return how long."""
        ended = time.monotonic()
        self._within_time(ended, "PostgreSQL answers", self._moment_is_known)
        self._within_time(ended, "what was accepted before is final", self._nothing_is_queued)
        self._within_time(ended, "callers know the outcome", lambda: not self.intents.unsettled(before=ended))
        self.scene.send(self.scene.new_intent())
        took_s = time.monotonic() - ended
        if took_s > self._recovers_within_s:
            self.intents.violation(f"it took {took_s:.1f} s until a send was issued")
        return took_s

    def _within_time(self, ended: float, what: str, is_so: Callable[[], bool]) -> None:
        left_s = max(0.0, ended + self._recovers_within_s - time.monotonic())
        if not comes_true(is_so, within_s=left_s, every_s=0.05):
            self.intents.violation(f"not within {self._recovers_within_s:.0f} s of the fault's end: {what}")

    def _moment_is_known(self) -> bool:
        try:
            with self.service.connection() as connection:
                self._moment = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        except SQLAlchemyError:
            return False
        return True

    def _nothing_is_queued(self) -> bool:
        try:
            with self.service.connection() as connection:
                return connection.execute(_QUEUED, {"moment": self._moment}).first() is None
        except SQLAlchemyError:
            return False

    def _count_deadlocks(self) -> None:
        """Add the deadlocks since the last look, by the server's log: a crash takes its counter."""
        seen = (self.service.logs / "postgresql.log").read_text(errors="replace").count("deadlock detected")
        if seen > self.figures.deadlocks:
            self.intents.violation(f"{seen - self.figures.deadlocks} deadlocks")
            self.figures.deadlocks = seen

    def finish(self) -> list[str]:
        """Let the callers learn what they have not yet, look at everything once more, and return what is wrong."""
        for actor in self._actors:
            actor.stop()
        for actor in self._actors:
            actor.join()
        self._recover()
        self._read_the_logs_to_their_ends()
        with self.service.connection() as connection:
            self.returned = connection.execute(_RETURNED).scalar_one()
        return self.look("the end", everything=True)

    def _read_the_logs_to_their_ends(self) -> None:
        """Once nothing happens any more, what was read of the logs, and was delivered of them, is all there is."""
        follower, deliveries = self._follower, self._deliveries
        follower.stop()
        follower.join()

        def unread() -> list[str]:
            follower.act()
            with self.service.connection() as connection:
                return follower.differences(connection)

        def undelivered() -> list[str]:
            return unread() + deliveries.missing()

        self._require_none(unread)
        for sentence in follower.told_otherwise():
            self.intents.violation(sentence)
        self._require_none(undelivered)
        self.events = deliveries.received, deliveries.repeats

    def _require_none(self, differences: Callable[[], list[str]]) -> None:
        if not comes_true(lambda: not differences(), within_s=_PATIENCE_S, every_s=0.1):
            for sentence in differences():
                self.intents.violation(sentence)

    def stop(self) -> None:
        """End every process and thread."""
        for caller in self._callers:
            caller.sender.giving_up.set()
        self._stopped.close()
        self.service.stop()


_QUEUED = text(
    " UNION ALL ".join(
        f"(SELECT FROM {table} WHERE status = 'queued' AND created_at <= :moment LIMIT 1)"
        for table in ("batches", "reversals")
    )
)
_RETURNED = text("SELECT count(*) FROM reversals WHERE is_return")
