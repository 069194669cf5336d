"""How gunicorn runs the application: its patience, its cores, and what is checked first."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest

from app.local import parts
from app.postgres import connections


@pytest.fixture
def gateway() -> Iterator[ModuleType]:
    """Return the module read anew, because it checks the settings as soon as it is read."""
    sys.modules.pop("app.web.gunicorn", None)
    yield importlib.import_module("app.web.gunicorn")
    sys.modules.pop("app.web.gunicorn", None)


def test_a_wrong_setting_stops_the_start_with_its_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", "soon")
    monkeypatch.delitem(sys.modules, "app.web.gunicorn", raising=False)
    with pytest.raises(SystemExit, match=r"^points: The setting POINTS_WAIT_S is wrong: "):
        importlib.import_module("app.web.gunicorn")


@pytest.mark.parametrize("wait_s", ["0", "25", "600"])
def test_the_gateway_is_more_patient_than_any_wait(wait_s: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", wait_s)
    monkeypatch.delitem(sys.modules, "app.web.gunicorn", raising=False)
    gateway = importlib.import_module("app.web.gunicorn")
    assert float(wait_s) < gateway.graceful_timeout < gateway.timeout


@pytest.mark.parametrize(("asked", "kept_s"), [(None, 75), ("120", 120)])
def test_a_kept_connection_outlives_the_60_s_that_proxies_keep_theirs(
    asked: str | None, kept_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if asked is not None:
        monkeypatch.setenv("POINTS_KEEP_ALIVE_S", asked)
    monkeypatch.delitem(sys.modules, "app.web.gunicorn", raising=False)
    assert importlib.import_module("app.web.gunicorn").keepalive == kept_s


def test_a_web_process_takes_no_server_that_only_reads_and_waits_for_none_longer_than_callers_would(
    gateway: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_writable_only", False)
    monkeypatch.setattr(connections, "_answer_timeout_s", connections.ANSWER_TIMEOUT_S)
    monkeypatch.setattr(gateway, "watch_connections", lambda: None)
    gateway.post_fork(None, SimpleNamespace(core=None))
    assert (connections._writable_only, connections._answer_timeout_s) == (True, connections.FRONT_ANSWER_TIMEOUT_S)


def core_of_one_more(gateway: ModuleType, processes: int, *others: int | None) -> int | None:
    """Return the core for one more process beside others who keep to theirs, of a server of so many processes."""
    workers = {pid: SimpleNamespace(core=core) for pid, core in enumerate(others)}
    worker = SimpleNamespace()
    gateway.pre_fork(SimpleNamespace(num_workers=processes, WORKERS=workers), worker)
    core: int | None = worker.core
    return core


@pytest.mark.parametrize(
    ("cores", "processes", "others", "core"),
    [
        ({0, 1}, 2, [], 0),
        ({0, 1}, 2, [0], 1),
        ({0, 1}, 2, [1], 0),  # It replaces one that has died.
        ({0, 1}, 2, [0, 1], 0),  # While all are renewed, there are twice as many.
        ({0, 1}, 2, [0, 1, 0], 1),
        ({4, 6}, 3, [4, 6], 4),
        ({3}, 2, [3], 3),
        ({0, 1, 2, 3}, 2, [None], None),  # The system knows better which of them are free.
    ],
)
def test_a_process_keeps_to_the_least_used_core_where_there_is_a_process_for_each(
    gateway: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    cores: set[int],
    processes: int,
    others: list[int | None],
    core: int | None,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: cores, raising=False)
    assert core_of_one_more(gateway, processes, *others) == core


def test_where_no_process_can_be_kept_to_a_core_none_is(gateway: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    assert core_of_one_more(gateway, 2) is None


@pytest.mark.parametrize("wait_s", ["0", "25", "600"])
def test_points_up_lets_web_answer_whoever_waits_before_it_kills_it(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, wait_s: str
) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", wait_s)
    gateway: ModuleType = request.getfixturevalue("gateway")
    assert parts.web(8000).stop_timeout_s > gateway.graceful_timeout > float(wait_s)
