"""The long run: `python -m tests.crash.soak --seed N --sends 10000 --faults 500 [--minutes M]`.

With `--slice` it goes on where the last slice of the seed ended, and keeps the figures (`tests.crash.slices`).
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.crash import slices
from tests.crash.faults import KINDS, impossible, plan
from tests.crash.run import Run

# What the last fault, the last look at everything and the callers' last retries may take after `--minutes`.
_ENDS_WITHIN_S = 180
_RECOVERS_WITHIN_S = 30.0


class OutOfTime(Exception):
    """The run should have ended by now."""


def _out_of_time(*_: object) -> None:
    raise OutOfTime


def main() -> int:
    chosen = _arguments()
    # Asked to end, it still ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if chosen.minutes:
        # Whatever hangs, and with time to end: no later than this it is over, with what was found until then.
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.setitimer(signal.ITIMER_REAL, chosen.minutes * 60 + _ENDS_WITHIN_S)
    say(f"seed {chosen.seed}")
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        before = slices.of_seed(chosen.seed) if chosen.slice else []
        run = Run(Path(chosen.keep or folder), chosen.seed, part=len(before), recovers_within_s=_RECOVERS_WITHIN_S)
        began = time.monotonic()
        try:
            run.start()
            if chosen.undo is not None:
                run.undo(chosen.undo)
            _faults(run, chosen, began, skipped=sum(one["faults"] for one in before))
            run.finish()
        except OutOfTime:
            run.figures.violations.append(f"the run did not end within {_ENDS_WITHIN_S} s of its time")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            run.stop()
        figures = _figures(run, time.monotonic() - began)
    one = slices.as_slice(figures)
    if chosen.slice:
        slices.record(one)
    say(slices.tables([one]))
    say(json.dumps(figures, indent=2))
    if run.figures.violations:
        say(f"replay: python -m tests.crash.soak {' '.join(sys.argv[1:])} --seed {chosen.seed}")
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--sends", type=int, default=10_000, help="acknowledged sends to reach")
    parser.add_argument("--faults", type=int, default=500, help="faults to inject")
    parser.add_argument(
        "--minutes", type=float, default=None, help="stop injecting after so long; it all ends soon after"
    )
    parser.add_argument("--slice", action="store_true", help="go on where the last slice of this seed ended")
    parser.add_argument("--undo", type=float, default=None, help="the share of sends to take back, again and again")
    parser.add_argument("--kinds", default="", help="only these kinds of fault, with commas between them")
    parser.add_argument("--keep", default="", help="a new folder for the logs, which is not removed")
    return parser.parse_args()


def _faults(run: Run, chosen: argparse.Namespace, began: float, *, skipped: int) -> None:
    kinds = chosen.kinds.split(",") if chosen.kinds else list(KINDS)
    for kind, reason in impossible(run.service).items():
        say(f"left out: {kind.replace('_', ' ')}: {reason}")
        kinds = [other for other in kinds if other != kind]
    whole = plan(chosen.seed, chosen.faults, kinds)
    planned, sends = whole[skipped:], int(chosen.sends) * (len(whole) - skipped) // len(whole)
    deadline = began + chosen.minutes * 60 if chosen.minutes else None
    done = 0

    def is_ahead() -> bool:
        """Slow the callers down when they are ahead, so that sends and faults come to their end together."""
        return run.intents.issued_count() > sends * (done + 2) / len(planned)

    run.pace(is_ahead)
    for fault in planned:
        if deadline is not None and time.monotonic() > deadline:
            say(f"{chosen.minutes:g} minutes are over")
            return
        started = time.monotonic()
        run.inject(fault)
        lasted_s = time.monotonic() - started
        wrong = run.settle(fault.kind)
        done += 1
        say(
            f"{done:4}/{len(planned)}  {fault.kind:<60} {lasted_s:5.1f} s, with recovery"
            f" {time.monotonic() - started:5.1f} s, {run.intents.issued_count():6} issued"
        )
        for sentence in wrong:
            say(f"      VIOLATION {sentence[:2_000]}")
    while run.intents.issued_count() < sends and (deadline is None or time.monotonic() < deadline):
        time.sleep(0.2)


def _figures(run: Run, lasted_s: float) -> dict[str, Any]:
    counts = run.intents.counts()
    return {
        "seed": run.figures.seed,
        "seconds": round(lasted_s),
        "sends_acknowledged": counts.get("201", 0),
        "sends_answered_202": counts.get("202", 0),
        "reversals_acknowledged": counts.get("reversals", 0),
        "cancelled": counts.get("cancelled", 0),
        "returned": run.returned,
        "events_delivered": run.events[0],
        "events_delivered_again": run.events[1],
        "retries": counts.get("retries", 0),
        "unknown_outcomes": counts.get("unknown outcomes", 0),
        "answers": dict(sorted(counts.items())),
        "faults": sum(run.figures.faults.values()),
        "faults_by_kind": dict(sorted(run.figures.faults.items())),
        "recovery_s_max": round(max(run.figures.recovery_s.values(), default=0.0), 1),
        "recovery_s_max_by_kind": {kind: round(took, 1) for kind, took in sorted(run.figures.recovery_s.items())},
        "deadlocks": run.figures.deadlocks,
        "violations": run.figures.violations,
    }


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
