"""The image and the compose file, built and run by an engine; the bases are stand-ins, not the published ones."""

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deadline import until
from tests.operations.engine import Engine, why_not
from tests.operations.senders import sending
from tests.pace import in_time
from tests.service import release
from tests.unit.deployment.files import OF_OURS, ROOT, RUNNING, health_check, seconds, service

_TOLD = ROOT / ".pytest_cache" / "containers"
_SCALE = ("--scale", "worker=2", "--scale", "web=2")
_RUNS = 20
# What the engine spends to begin a check: 2.5 s of CPU for 46 checks were measured.
_BEGUN_S = 0.055


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(why_not() is not None, reason=f"containers were not built or run: {why_not()}")
def test_all_parts_run_in_containers_and_a_release_under_load_loses_nothing(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    _copy(engine.tree)
    wheels = _wheels(tmp_path)
    with engine.running():
        engine.make_bases(wheels)
        engine.out("docker-compose", "build", "migrate")
        engine.out("docker-compose", "up", "--detach", "--no-build", *_SCALE)
        _become_healthy(engine, len(RUNNING) + 2)
        _are_contained(engine)
        _own_no_more_than_they_need(engine)
        _cost_little_to_check(engine)
        _are_backed_up(engine)
        _are_released(engine)
    _TOLD.parent.mkdir(exist_ok=True)
    _TOLD.write_text(
        "the published images of Python, PostgreSQL and Valkey: containers ran on stand-ins of Debian's files"
    )


def _copy(tree: Path) -> None:
    """Make what an operator has: the files of the release, and the `.env` of the page."""
    release.copy(tree, "Dockerfile", ".dockerignore", "docker-compose.yml")
    compose = tree / "docker-compose.yml"
    # Debian 12 has an engine that knows one interval, and a Compose that takes the project's name from the environment
    # alone and this number from the file alone.
    text = re.sub(r" interval: \d+s\n *start_interval: 1s", " interval: 2s", compose.read_text())
    text = text.replace("name: points\n", "", 1).replace("${WEB_PIDS:-8192}", "8192", 1)
    compose.write_text(text)
    page = (ROOT / "docs/deploying.md").read_text()
    sample = re.search(r"\$ (\(umask 077; printf .*?> \.env\))", page, re.DOTALL)
    assert sample is not None
    subprocess.run(["/bin/sh", "-c", sample[1]], cwd=tree, check=True)
    with (tree / ".env").open("a") as file:
        file.write("WEB_PORT=8000-8001\nWEB_CONCURRENCY=1\nWORKER_CONCURRENCY=1\n")


def _wheels(folder: Path) -> Path:
    """Get what the lock names."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--dest", "wheels"]
    shutil.copy(ROOT / "requirements.lock", folder)
    done = release.ran(*pip, "--requirement", "requirements.lock", cwd=folder)
    if done.returncode:
        pytest.skip("containers were not built or run: pip cannot fetch what the lock names")
    return folder / "wheels"


def _parts(engine: Engine, *, healthy: bool = False) -> dict[str, list[str]]:
    """Return the containers that run of each part, or those that are healthy."""
    listed = engine.out(
        "docker", "ps", "--no-trunc", "--format", '{{.ID}} {{.Label "com.docker.compose.service"}} {{.Status}}'
    )
    found: dict[str, list[str]] = defaultdict(list)
    for container, name, status in (line.split(" ", 2) for line in listed.splitlines()):
        if status.endswith("(healthy)") or not healthy:
            found[name].append(container)
    return found


def _become_healthy(engine: Engine, count: int) -> None:
    until(lambda: sum(map(len, _parts(engine, healthy=True).values())) == count, "all are healthy", every_s=0.5)


def _inside(engine: Engine, name: str, *command: str) -> str:
    return engine.out("docker", "exec", _parts(engine)[name][0], *command)


def _sql(engine: Engine, question: str) -> str:
    psql = ("psql", "--username=postgres", "--tuples-only", "--no-align", "points", "--command")
    return _inside(engine, "postgres", *psql, question)


def _are_contained(engine: Engine) -> None:
    for name in OF_OURS[1:]:
        status = dict(
            line.split(":\t")
            for line in _inside(engine, name, "grep", "-E", "^(Uid|Cap)", "/proc/1/status").splitlines()
        )
        assert status.pop("Uid") == "10001\t10001\t10001\t10001", name
        assert set(status.values()) == {"0" * 16}, name
        assert _inside(engine, name, "sh", "-c", "touch /srv/points/file 2> /dev/null || echo refused") == "refused", (
            name
        )
    assert _inside(engine, "web", "printenv", "POINTS_SECRETS_KEY")  # Without it, webhooks are answered 503.
    # A module without bytecode would be compiled anew at each start.
    loaded = (
        "import os, sys, celery, decimal, sqlalchemy, worker\n"
        "cached = [getattr(module, '__cached__', None) for module in sys.modules.values()]\n"
        "print([file for file in cached if file and not os.path.exists(file)])"
    )
    assert _inside(engine, "worker", "python", "-c", loaded) == "[]"


def _own_no_more_than_they_need(engine: Engine) -> None:
    rights = "rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls"
    assert _sql(engine, f"SELECT {rights} FROM pg_roles WHERE rolname = 'points'") == "f"
    owned = "SELECT nspname FROM pg_namespace WHERE nspowner = 'points'::regrole"
    assert _sql(engine, owned) == "public"
    assert _sql(engine, "SELECT count(*) FROM pg_database WHERE datdba = 'points'::regrole") == "0"
    assert _sql(engine, "SELECT rolpassword IS NULL FROM pg_authid WHERE rolname = 'postgres'") == "t"


def _cost_little_to_check(engine: Engine) -> None:
    costs = {name: _cost_s(engine, name) for name in RUNNING}
    assert in_time(max(costs.values()), 0.05, "process_time"), costs
    shares = [(cost + _BEGUN_S) / seconds(service(name)["healthcheck"]["interval"]) for name, cost in costs.items()]
    assert in_time(sum(shares), 0.01, "process_time"), costs


def _cost_s(engine: Engine, name: str) -> float:
    """Return the CPU of one health check, in its container."""
    loop = f'for i in $(seq {_RUNS}); do "$@" > /dev/null || exit 1; done; times'
    said = _inside(engine, name, "bash", "-c", loop, "check", *health_check(name))
    spent = re.findall(r"(\d+)m([\d.]+)s", said)
    return sum(int(minutes) * 60 + float(rest) for minutes, rest in spent) / _RUNS


def _are_backed_up(engine: Engine) -> None:
    engine.out("docker-compose", "--profile", "backup", "up", "--detach", "--no-recreate", "--no-deps", "log")
    engine.out("docker-compose", "--profile", "backup", "run", "--rm", "--no-deps", "backup")
    _become_healthy(engine, len(RUNNING) + 3)


class _Events:
    """What happened to the containers of the parts."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def _read(self) -> Iterator[tuple[str, str, str]]:
        for line in self._file.read_text().splitlines():
            event = json.loads(line)
            name = event["Actor"]["Attributes"].get("com.docker.compose.service")
            yield name, event["Action"], event["id"]

    def removed(self) -> list[str]:
        return [name for name, action, _ in self._read() if action == "destroy" and name]

    def fewest(self, part: str, healthy: list[str]) -> int:
        """Return how many containers of a part were healthy and not told to end, when they were fewest."""
        now, counts = set(healthy), [len(healthy)]
        for name, action, container in self._read():
            if name == part and action != "destroy":
                now = now | {container} if action == "health_status: healthy" else now - {container}
                counts.append(len(now))
        return min(counts)


@contextmanager
def _watched(engine: Engine, file: Path) -> Iterator[_Events]:
    wanted = ("health_status", "kill", "die", "destroy")
    filters = [f"--filter=event={action}" for action in wanted]
    with file.open("wb") as out:
        command = ["docker", "events", "--format={{json .}}", *filters]
        watcher = subprocess.Popen(command, env=engine.environment, stdout=out)
    try:
        yield _Events(file)
    finally:
        watcher.kill()
        watcher.wait()


def _are_released(engine: Engine) -> None:
    _inside(engine, "worker", "points", "organizations", "create", "Shop", "--balance", "100000")
    key = json.loads(_inside(engine, "worker", "points", "keys", "create", "1", "--json"))["key"]
    before = _parts(engine)
    with (engine.tree / "Dockerfile").open("a") as file:
        file.write("LABEL release=second\n")
    urls = [f"http://127.0.0.1:{port}" for port in (8000, 8001)]
    with (
        _watched(engine, engine.tree / "events") as events,
        sending(engine.in_its_network(), key, *urls) as sends,
    ):
        sends.goes_on()
        engine.environment["WEB_CONCURRENCY"] = "none"  # The web of this setting does not start.
        sick = engine.run("deploy/release")
        assert sick.returncode == 1, sick.stdout
        assert re.search(r"release: web is re\w+/\w+, and nothing more was replaced", sick.stderr), sick.stderr
        assert events.removed() == ["migrate", "worker", "worker", "deliveries", "beat", "flower", "web"]
        [left] = _parts(engine, healthy=True)["web"]
        assert left in before["web"]
        sends.goes_on()
        del engine.environment["WEB_CONCURRENCY"]
        engine.out("deploy/release", "web")
        assert events.removed()[7:] == ["migrate", "web", "web"]
        sends.goes_on()
    now = _parts(engine, healthy=True)
    for name in OF_OURS[1:]:
        assert len(now[name]) == len(before[name]), name
        assert set(now[name]).isdisjoint(before[name]), name
    image = ("docker", "inspect", "--format", "{{.Config.Labels.release}}")
    assert set(engine.out(*image, *(each for name in OF_OURS[1:] for each in now[name])).split()) == {"second"}
    assert [events.fewest(name, before[name]) for name in ("worker", "web")] == [1, 1]
    assert set(sends.answers) <= {"201", "none"}, sends.answers
    assert _sql(engine, "SELECT count(*) FROM transactions") == str(sends.answers["201"])
    assert json.loads(_inside(engine, "worker", "points", "audit", "--json"))["balanced"] is True
