"""Whatever becomes of a call on its way, the client's sends are paid exactly once."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from points_client import NoAnswer, Points
from tests.e2e.cutting_front import FAULTS, PASSED, CuttingFront
from tests.service.inside import Service

# Two thousand is the long run: it was made by hand.
SENDS = int(os.environ.get("CLIENT_SENDS", "200"))
CALLERS = 16


@pytest.fixture
def sends() -> range:
    return range(SENDS)


def test_every_send_is_paid_once_though_calls_are_cut_and_refused(service: Service, sends: range) -> None:
    caller = service.organization(10 * SENDS)
    with (
        CuttingFront(service.port, often=0.35, seed=36) as front,
        Points(caller.live, front.url) as points,
        ThreadPoolExecutor(CALLERS) as pool,
    ):

        def send(number: int) -> tuple[int, int]:
            sent = points.send(
                items=[{"email": f"{number}@cut.example.com", "reference": f"cut-{number}"}],
                amount=3,
                idempotency_key=None if number % 2 else f"cut-{number}",
                wait_s=120,
            )
            [transaction] = sent.transactions
            assert (sent.status, transaction.debited, transaction.email) == (
                "issued",
                True,
                f"{number}@cut.example.com",
            )
            return sent.batch_id, transaction.id

        found = list(pool.map(send, sends))
    assert set(front.seen) == {*FAULTS, PASSED}
    assert len(set(found)) == SENDS
    with Points(caller.live, service.url) as points:
        paid = Counter(one.reference for one in points.transactions.list(page_size=1000))
        assert paid == {f"cut-{number}": 1 for number in sends}
        assert points.organization().balance == 7 * SENDS
    print(f"{SENDS} sends, {sum(front.seen.values())} calls, each paid once: {dict(front.seen)}")


def test_a_run_that_is_broken_off_goes_on_and_pays_nobody_twice(service: Service) -> None:
    caller = service.organization(10_000)
    emails = [f"{number}@run.example.com" for number in range(40)]
    with (
        CuttingFront(service.port, often=0.3, seed=7) as front,
        Points(caller.live, front.url) as points,
    ):
        begun = points.send_all(emails, run="2026-03", amount=5, part_size=7)
        for _ in range(10):  # Then the program ends, with parts on their way.
            next(begun)
        done = list(points.send_all(emails, run="2026-03", amount=5, part_size=7))
    assert [one.email for one in done] == emails
    assert service.balance(caller.live) == 10_000 - 40 * 5


def test_who_gets_no_answer_gets_the_key_to_ask_again_with(service: Service) -> None:
    caller = service.organization(10)
    with (
        CuttingFront(service.port, often=1.0, seed=1) as front,
        Points(caller.live, front.url) as points,
        pytest.raises(NoAnswer) as none,
    ):
        points.send(recipients=["ann@example.com"], amount=4, wait_s=0.2)
    assert none.value.key is not None
    with Points(caller.live, service.url) as points:
        for _ in range(2):
            points.send(recipients=["ann@example.com"], amount=4, idempotency_key=none.value.key)
        assert points.organization().balance == 6
