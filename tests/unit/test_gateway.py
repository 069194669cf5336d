"""How gunicorn runs the application: its patience, its cores and files, what is checked first and told last."""

import importlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest

from app import connections
from app.local import parts
from app.log_output import Output

# What the hooks ask of gunicorn's settings.
_CFG = SimpleNamespace(reuse_port=False)


@pytest.fixture
def gateway() -> Iterator[ModuleType]:
    """Return the module read anew, because it checks the settings as soon as it is read."""
    sys.modules.pop("app.api.gateway", None)
    yield importlib.import_module("app.api.gateway")
    sys.modules.pop("app.api.gateway", None)


def test_a_wrong_setting_stops_the_start_with_its_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", "soon")
    monkeypatch.delitem(sys.modules, "app.api.gateway", raising=False)
    with pytest.raises(SystemExit, match=r"^points: The setting POINTS_WAIT_S is wrong: "):
        importlib.import_module("app.api.gateway")


@pytest.mark.parametrize("wait_s", ["0", "25", "600"])
def test_the_gateway_is_more_patient_than_any_wait(wait_s: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", wait_s)
    monkeypatch.delitem(sys.modules, "app.api.gateway", raising=False)
    gateway = importlib.import_module("app.api.gateway")
    assert float(wait_s) < gateway.graceful_timeout < gateway.timeout


def test_what_a_web_process_told_last_is_written_before_it_ends(
    gateway: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    monkeypatch.setattr("os.write", lambda _, piece: written.append(piece))
    output = Output()
    output._is_waited_for = threading.Event()  # As after `write_together`, with a thread that does not come to it.
    monkeypatch.setattr(gateway.logs, "output", output)
    output.write_soon(b"the last\n")
    assert written == []
    gateway.worker_exit(None, None)
    assert written == [b"the last\n"]


def test_a_web_process_takes_no_server_that_only_reads_and_waits_for_none_longer_than_callers_would(
    gateway: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_writable_only", False)
    monkeypatch.setattr(connections, "_answer_timeout_s", connections.ANSWER_TIMEOUT_S)
    for name in ("processes.take_slot", "watch_connections", "logs.output.write_together"):
        monkeypatch.setattr(f"app.api.gateway.{name}", lambda: None)
    gateway.post_fork(None, SimpleNamespace(core=None))
    assert (connections._writable_only, connections._answer_timeout_s) == (True, connections.FRONT_ANSWER_TIMEOUT_S)


def core_of_one_more(gateway: ModuleType, processes: int, *others: int | None) -> int | None:
    """Return the core for one more process beside others who keep to theirs, of a server of so many processes."""
    workers = {pid: SimpleNamespace(core=core, share=SimpleNamespace(place=pid)) for pid, core in enumerate(others)}
    worker = SimpleNamespace()
    gateway.pre_fork(SimpleNamespace(num_workers=processes, WORKERS=workers, cfg=_CFG), worker)
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
    monkeypatch.setattr("os.sched_setaffinity", lambda *_: None, raising=False)
    assert core_of_one_more(gateway, processes, *others) == core


def test_where_no_process_can_be_kept_to_a_core_none_is(gateway: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_setaffinity", raising=False)
    assert core_of_one_more(gateway, 2) is None


def test_each_process_sees_the_connections_of_the_others_and_a_dead_one_leaves_its_place(gateway: ModuleType) -> None:
    workers = {pid: SimpleNamespace(pid=pid) for pid in range(3)}
    server = SimpleNamespace(num_workers=3, WORKERS={}, cfg=_CFG)
    for pid, worker in workers.items():
        gateway.pre_fork(server, worker)
        server.WORKERS[pid] = worker
        worker.share.take_part(True, 10 * pid)
    assert [worker.share.place for worker in workers.values()] == [0, 1, 2]
    assert [worker.share.leaves_next() for worker in workers.values()] == [False, True, True]

    gateway.child_exit(server, server.WORKERS.pop(0))
    assert [worker.share.leaves_next() for worker in server.WORKERS.values()] == [False, True]
    one_more = SimpleNamespace()
    gateway.pre_fork(server, one_more)
    assert one_more.share.place == 0


def test_processes_with_an_address_each_leave_no_connection_to_another(gateway: ModuleType) -> None:
    own = SimpleNamespace(place=0)
    worker = SimpleNamespace(share=own)
    server = SimpleNamespace(num_workers=2, WORKERS={}, cfg=SimpleNamespace(reuse_port=True))
    gateway.pre_fork(server, worker)
    assert worker.share is own


@pytest.mark.parametrize("wait_s", ["0", "25", "600"])
def test_points_up_lets_web_answer_whoever_waits_before_it_kills_it(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, wait_s: str
) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", wait_s)
    gateway: ModuleType = request.getfixturevalue("gateway")
    assert parts.web(8000).stop_timeout_s > gateway.graceful_timeout > float(wait_s)


@pytest.mark.parametrize(
    ("files", "raised_to", "connections"),
    [
        ((20_000, 20_000), [], 1_000),
        ((-1, -1), [], 1_000),
        ((1_024, 4_096), [(1_150, 4_096)], 1_000),
        ((256, -1), [(1_150, -1)], 1_000),
        ((256, 1_024), [(1_024, 1_024)], 874),
        ((1_024, 1_024), [], 874),
        ((100, 100), [], 1),
    ],
)
def test_a_process_is_admitted_the_files_it_needs_or_takes_fewer_connections(
    gateway: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    files: tuple[int, int],
    raised_to: list[tuple[int, int]],
    connections: int,
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.RLIM_INFINITY", -1)  # A number of each system's own.
    monkeypatch.setattr("resource.getrlimit", lambda _: files)
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: raised.append(limits))
    assert (gateway._connections_max(), raised) == (connections, raised_to)
    assert gateway.threads < gateway._CONNECTIONS_MAX
