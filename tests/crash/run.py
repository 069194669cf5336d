"""A run: the service under load, faults one after another, and the books looked at after each."""

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from tests.crash import parties, poison, told
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

RECOVERS_WITHIN_S = 30.0
# A webhook belongs for 20 s to a thread that was killed, and a connection that fell silent is given up after as long.
_DELIVERED_WITHIN_S = 60.0
_STARTS_WITHIN_S = 60.0
_CALLERS = 6


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

    def __init__(self, folder: Path, seed: int, *, part: int = 0, **environment: str) -> None:
        self.figures = Figures(seed=seed)
        self._callers_seed = f"{seed} part {part}" if part else str(seed)
        self.intents = Intents()
        self.service = Service(folder, **environment)
        self._seen: set[str] = set()
        self._web_log_read = 0
        self.returned = 0
        self.events = 0, 0
        self._callers: list[Caller] = []
        self._operator: Operator | None = None
        self._follower: Follower | None = None
        self._deliveries: Deliveries | None = None

    def start(self) -> None:
        """Start the service, wait until it issues, and let the callers come."""
        self.service.start()
        with self.service.connection() as connection:
            poison.install(connection)
            made = parties.make(connection)
        self.scene = Scene(self.service, made, self.intents)
        self._snapshot = Snapshot(self.service.engine, self.intents)
        self.scene.send(self.scene.new_intent())
        seed = self._callers_seed
        self._callers = [Caller(number, seed, self.service.web_port, made, self.intents) for number in range(_CALLERS)]
        self._operator = Operator(seed, self.service.engine, made)
        self._follower = Follower(self.service.web_port, made, self.intents)
        self._deliveries = Deliveries(self.service.web_port, self._follower.logs, self.intents)
        self._deliveries.start()
        for thread in (*self._callers, self._operator, self._follower):
            thread.start()

    def pace(self, is_ahead: Callable[[], bool]) -> None:
        """Let the callers send less while `is_ahead()` holds."""
        for caller in self._callers:
            caller.is_ahead = is_ahead

    def undo(self, share: float) -> None:
        """Let the callers take back that share of what they were answered."""
        for caller in self._callers:
            caller.undone = share

    def inject(self, planned: Planned) -> None:
        """Bring one fault about, to its end, and look at the books at once."""
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
        if self._deliveries is not None:
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
        if took_s > RECOVERS_WITHIN_S:
            self.intents.violation(f"it took {took_s:.1f} s until a send was issued")
        return took_s

    def _within_time(self, ended: float, what: str, is_so: Callable[[], bool]) -> None:
        left_s = max(0.0, ended + RECOVERS_WITHIN_S - time.monotonic())
        if not comes_true(is_so, within_s=left_s, every_s=0.05):
            self.intents.violation(f"not within {RECOVERS_WITHIN_S:.0f} s of the fault's end: {what}")

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
        """Add the deadlocks since the last look. A crash of PostgreSQL takes its counter; its log stays."""
        log = (self.service.logs / "postgresql.log").read_text(errors="replace")
        logged = len(re.findall("deadlock detected", log))
        counted = 0
        try:
            with self.service.connection() as connection:
                counted = connection.execute(_DEADLOCKS).scalar_one()
        except SQLAlchemyError:
            pass
        seen = max(logged, counted)
        if seen > self.figures.deadlocks:
            self.intents.violation(f"{seen - self.figures.deadlocks} deadlocks")
            self.figures.deadlocks = seen

    def finish(self) -> list[str]:
        """Let the callers learn what they have not yet, look at everything once more, and return what is wrong."""
        for thread in (*self._callers, self._operator):
            if thread is not None:
                thread.stop()
        for thread in (*self._callers, self._operator):
            if thread is not None:
                thread.join()
        self._recover()
        self._read_the_logs_to_their_ends()
        with self.service.connection() as connection:
            self.returned = connection.execute(_RETURNED).scalar_one()
        return self.look("the end", everything=True)

    def _read_the_logs_to_their_ends(self) -> None:
        """Once nothing happens any more, what was read of the logs, and was delivered of them, is all there is."""
        follower, deliveries = self._follower, self._deliveries
        assert follower is not None
        assert deliveries is not None
        follower.stop()
        follower.join()

        def unread() -> list[str]:
            follower.look()
            with self.service.connection() as connection:
                return follower.differences(connection)

        def undelivered() -> list[str]:
            return unread() + deliveries.missing()

        self._require_none(unread, within_s=RECOVERS_WITHIN_S)
        for sentence in told.differences(follower.logs, self.intents):
            self.intents.violation(sentence)
        self._require_none(undelivered, within_s=_DELIVERED_WITHIN_S)
        self.events = deliveries.received, deliveries.repeats

    def _require_none(self, differences: Callable[[], list[str]], *, within_s: float) -> None:
        if not comes_true(lambda: not differences(), within_s=within_s, every_s=0.5):
            for sentence in differences():
                self.intents.violation(sentence)

    def stop(self) -> None:
        """End every process and thread."""
        for caller in self._callers:
            caller.stop()
            caller.sender.giving_up.set()
        for thread in (self._operator, self._follower):
            if thread is not None:
                thread.stop()
        if self._deliveries is not None:
            self._deliveries.stop()
        self.service.stop()


_QUEUED = text(
    " UNION ALL ".join(
        f"(SELECT FROM {table} WHERE status = 'queued' AND created_at <= :moment LIMIT 1)"
        for table in ("batches", "reversals")
    )
)
_RETURNED = text("SELECT count(*) FROM reversals WHERE is_return")
_DEADLOCKS = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
