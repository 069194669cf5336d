"""Whatever dies, breaks off or comes twice: nothing is lost, nothing is paid twice, nobody waits for ever.

A short run of one fault of each sort, or of every kind, in an order that the seed decides. `CRASH_SEED=N` runs another
one, and `python -m tests.crash.soak` a long one.
"""

import pytest

from tests.crash.conftest import SEED
from tests.crash.faults import KINDS, QUICK, Planned, impossible, plan
from tests.crash.run import Run


def _replay(kind: str) -> str:
    return f"replay: CRASH_SEED={SEED} python -m pytest tests/crash -k '{kind}'"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(planned.kind, marks=() if planned.kind in QUICK else pytest.mark.long)
        for planned in plan(SEED, len(KINDS), list(KINDS))
    ],
)
def test_nothing_is_lost_and_nothing_paid_twice_when(kind: str, crash_run: Run) -> None:
    if (reason := impossible(crash_run.service).get(kind)) is not None:
        pytest.skip(reason)
    crash_run.inject(Planned(number=0, kind=kind, seed=f"{SEED} {kind} 0"))
    assert crash_run.settle(kind) == [], _replay(kind)


def test_at_the_end_the_books_hold_every_answer_that_was_given(crash_run: Run) -> None:
    assert crash_run.finish() == [], _replay("")
    assert crash_run.figures.deadlocks == 0
