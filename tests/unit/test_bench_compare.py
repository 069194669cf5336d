"""Comparing two checkouts: who stands over whom, whose turn it is, and what is counted."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import compare
from benchmarks.compare import main
from benchmarks.load import Plan
from benchmarks.service import ROOT, Sender


class Service:
    """A service, imagined: `name` is that of its checkout's folder."""

    port = 8000

    def __init__(self, name: str, world: "World") -> None:
        self.name = name
        self._world = world

    def sender(self) -> Sender:
        return Sender(organization_id=1, key=f"key of {self.name}")

    def accounts(self, name: str, count: int) -> list[str]:
        return [f"{name}.{place}@example.com" for place in range(count)]

    def wait_until_folded(self) -> None:
        self._world.turns.append(f"{self.name} is folded")


class World:
    """Both services; each look, in order, and the rate that it gives: 1,000 in the round that is not counted."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.plans: list[tuple[Plan, ...]] = []
        self.worker_cpu_ms = {"this": 1.0, "before": 1.0}

    @contextmanager
    def running(self, *, checkout: Path = ROOT) -> Iterator[Service]:
        yield Service("this" if checkout == ROOT else checkout.name, self)

    def measure_calls(self, service: Service, *plans: Plan, seconds: float) -> dict[str, float]:
        assert seconds == 0.5
        requests = [plan.requests[0] for plan in plans]
        assert all(f"key of {service.name}".encode() in request or b"GET /healthz" in request for request in requests)
        self.plans.append(plans)
        self.turns.append(service.name)
        rate = 1_000.0 if len(self.plans) <= 2 else {"this": 300.0, "before": 200.0}[service.name]
        figures = dict.fromkeys(compare._FIGURES, 1.0)
        return figures | {"rate_per_s": rate, "worker1 cpu_ms": self.worker_cpu_ms[service.name]}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    imagined = World()
    monkeypatch.setattr("benchmarks.compare.running", imagined.running)
    monkeypatch.setattr("benchmarks.compare.stop_with_us", lambda: None)
    monkeypatch.setattr("benchmarks.cpu.measure_calls", imagined.measure_calls)
    return imagined


@pytest.fixture
def before(tmp_path: Path) -> Path:
    (tmp_path / "before/app").mkdir(parents=True)
    return tmp_path / "before"


def _run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments), "--seconds", "0.5"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_this_checkout_stands_over_the_other_and_the_first_round_is_not_counted(world: World, before: Path) -> None:
    output = _run(before, "--only", "two organizations", "--rounds", "3")
    [line] = [line for line in output.splitlines() if "rate per s" in line]
    assert [cell.strip() for cell in line.strip("│ ").split("│")] == [
        "send of one, two organizations", "rate per s", "200", "300", "× 1.500 (1.500 – 1.500)",
    ]  # fmt: skip
    assert [len(plans) for plans in world.plans] == [2] * 8


def test_each_goes_first_in_every_other_round(world: World, before: Path) -> None:
    _run(before, "--only", "callers 8", "--rounds", "3")
    assert world.turns == ["this", "before", "before", "this"] * 2


def test_after_many_recipients_the_next_one_waits_until_their_credits_are_folded(world: World, before: Path) -> None:
    _run(before, "--only", "10,000", "--rounds", "1")
    assert world.turns == [
        "this", "this is folded", "before", "before is folded", "before", "before is folded", "this", "this is folded",
    ]  # fmt: skip


def test_all_calls_are_compared_unless_some_are_named(world: World, before: Path) -> None:
    _run(before, "--rounds", "1")
    assert len(world.plans) == 2 * 2 * len(compare._CALLS)


@pytest.mark.parametrize(
    ("this", "other", "is_shown"), [(0.001, 0.002, False), (0.001, 0.02, True), (0.02, 0.001, True)]
)
def test_a_part_that_used_next_to_nothing_on_both_sides_is_left_out(
    world: World, before: Path, this: float, other: float, is_shown: bool
) -> None:
    world.worker_cpu_ms = {"this": this, "before": other}
    output = _run(before, "--only", "callers 8", "--rounds", "1")
    assert ("worker1 cpu" in output) == is_shown
    assert "web cpu" in output
