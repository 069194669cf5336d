"""The long run: `python -m tests.crash.soak --seed N --sends 10000 --faults 500 [--minutes M]`."""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.crash.faults import KINDS, NEEDS_A_VOLUME, plan
from tests.crash.run import Run


def main() -> int:
    chosen = _arguments()
    # Asked to end, it still ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    say(f"seed {chosen.seed}")
    replay = f"python -m tests.crash.soak --seed {chosen.seed} --sends {chosen.sends} --faults {chosen.faults}"
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        run = Run(Path(chosen.keep or folder), chosen.seed)
        began = time.monotonic()
        try:
            run.start()
            _faults(run, chosen, began)
            run.finish()
        finally:
            run.stop()
        figures = _figures(run, time.monotonic() - began)
    _print_table(figures)
    say(json.dumps(figures, indent=2))
    if run.figures.violations:
        say(f"replay: {replay}" + (f" --kinds {chosen.kinds}" if chosen.kinds else ""))
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--sends", type=int, default=10_000, help="acknowledged sends to reach")
    parser.add_argument("--faults", type=int, default=500, help="faults to inject")
    parser.add_argument("--minutes", type=float, default=None, help="stop injecting after so long")
    parser.add_argument("--kinds", default="", help="only these kinds of fault, with commas between them")
    parser.add_argument("--keep", default="", help="a new folder for the logs, which is not removed")
    return parser.parse_args()


def _faults(run: Run, chosen: argparse.Namespace, began: float) -> None:
    kinds = chosen.kinds.split(",") if chosen.kinds else list(KINDS)
    if NEEDS_A_VOLUME in kinds and not run.service.volume.is_mounted:
        say("the disk is not filled: this needs a file system of its own, and we may not mount one")
        kinds.remove(NEEDS_A_VOLUME)
    planned = plan(chosen.seed, chosen.faults, kinds)
    deadline = began + chosen.minutes * 60 if chosen.minutes else None
    done, sends = 0, int(chosen.sends)

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
    while run.intents.issued_count() < chosen.sends and (deadline is None or time.monotonic() < deadline):
        time.sleep(0.2)


def _figures(run: Run, lasted_s: float) -> dict[str, Any]:
    counts = run.intents.counts()
    return {
        "seed": run.figures.seed,
        "seconds": round(lasted_s),
        "sends_acknowledged": counts.get("201", 0),
        "sends_answered_202": counts.get("202", 0),
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


def _print_table(figures: dict[str, Any]) -> None:
    say("")
    say(f"{'fault':<62} {'times':>5} {'recovery s, max':>16}")
    for kind, times in figures["faults_by_kind"].items():
        say(f"{kind.replace('_', ' '):<62} {times:>5} {figures['recovery_s_max_by_kind'].get(kind, 0.0):>16}")
    say("")
    for name in ("sends_acknowledged", "retries", "unknown_outcomes", "faults", "recovery_s_max", "deadlocks"):
        say(f"{name.replace('_', ' '):<62} {figures[name]:>5}")
    say(f"{'violations':<62} {len(figures['violations']):>5}")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
