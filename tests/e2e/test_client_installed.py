"""The client as somebody else has it: the blocks of its README, and what it needs."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from points_client import PlatformPoints, Points
from points_client.testing import KEY, URL, FakePoints
from tests.service.inside import Service
from tests.unit.deployment.files import ROOT

_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def test_the_page_runs_from_its_first_block_to_its_last(service: Service, tmp_path: Path) -> None:
    caller = service.organization(sandbox_balance=1_000)
    blocks = _PYTHON.findall((ROOT / "client" / "README.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 8
    page = "\n".join(_TOLD + block if "consumer.catch_up()" in block else block for block in blocks)
    page = f"{page}\n{_RECEIVED}"
    for printed, running in (("http://127.0.0.1:8000", service.url), ("pts_dev_…", caller.development)):
        page = page.replace(printed, running)
    assert "…" not in page
    printed = _run([sys.executable, "-W", "error", "-"], input=page, cwd=tmp_path)
    assert re.search(r"^ada@example.com (credited|held)$", printed, re.MULTILINE)
    assert "0 were not paid" in printed
    assert "120 points came back" in printed
    assert re.findall(r"^received (\d+)$", printed, re.MULTILINE) == ["204", "204", "400"]
    assert re.search(r"^[1-9]\d* events handled$", printed, re.MULTILINE)


# An event stands in the log within a second of its commit, and the page asks for what stands there now.
_TOLD = """
import time

while not list(points.events.list(types=["batch.*"])):
    time.sleep(0.05)
"""

# A webhook's first event is a ping. The receiver of the page takes it, and refuses what somebody else has signed.
_RECEIVED = """
import base64, hashlib, hmac, json, time

live = Points("pts_dev_…", "http://127.0.0.1:8000")
consumer = Consumer(live, transaction=transaction, load=load, handle=handle, store=store, types=("batch.*",))
last = list(live.events.list())[-1]
for change, secret in (({"type": "ping", "data": {}}, b"s" * 24), ({}, b"s" * 24), ({}, b"t" * 24)):
    body = json.dumps(dict(last.document) | change).encode()
    moment = str(int(time.time()))
    mac = hmac.new(secret, b"evt." + moment.encode() + b"." + body, hashlib.sha256).digest()
    headers = {"webhook-id": "evt", "webhook-timestamp": moment}
    headers["webhook-signature"] = "v1," + base64.b64encode(mac).decode()
    print("received", receive(body, headers, "whsec_" + base64.b64encode(b"s" * 24).decode()))
live.close()
database.close()
"""


# What a reader of types must report, beside a wrong name in each call; and what it must not.
_FAULTS = (
    'platform.users.register_many([{"email": "ada@example.com", "first_name": "Ada", "typo": "1"}])',
    'platform.users.change(1, first_name="Ada", typo="1")',
    "platform.organizations.change(1, is_suspended=True, typo=True)",
)
_RIGHT = (
    'platform.users.register_many([{"email": "ada@example.com", "first_name": "Ada", "external_id": None}])',
    'platform.users.change(1, email="ada@example.com", external_id=None)',
    "platform.organizations.change(1, held_days=None, is_suspended=True)",
    "Points.from_env(patience_s=1)",
)


def _calls() -> Iterator[str]:
    """Yield each call of the clients, such as `points.send` and `platform.users.change`."""
    clients = {"points": Points(KEY, URL, transport=FakePoints()), "platform": PlatformPoints(KEY, URL)}
    for client, made in clients.items():
        parts = {name: getattr(made, name) for name in dir(made) if not name.startswith("_")}
        yield from (f"{client}.{name}" for name, part in parts.items() if callable(part))
        for noun, part in parts.items():
            if type(part).__module__.startswith("points_client"):
                yield from (f"{client}.{noun}.{name}" for name in dir(part) if not name.startswith("_"))


def test_a_wrong_name_in_any_call_is_a_fault_of_types(tmp_path: Path) -> None:
    faults = [*(f"{call}(*given, typo=1)" for call in _calls()), *_FAULTS]
    assert "platform.users.change(*given, typo=1)" in faults
    opening = (
        "from typing import Any",
        "from points_client import PlatformPoints, Points",
        "def call(points: Points, platform: PlatformPoints, given: list[Any]) -> None:",
    )
    lines = [*opening, *(f"    {line}" for line in (*faults, *_RIGHT))]
    (tmp_path / "caller.py").write_text("\n".join(lines))
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-httpx.*]\nfollow_imports = skip\n")
    environment = {**os.environ, "MYPYPATH": str(ROOT / "client" / "src")}
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(tmp_path), "caller.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    reported = dict(re.findall(r"^caller\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE))
    assert [lines[int(number) - 1].strip() for number in reported] == faults, done.stdout + done.stderr
    assert all('"typo"' in sentence for sentence in reported.values()), done.stdout


def test_it_needs_httpx_alone_and_is_typed() -> None:
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    assert [Requirement(one).name for one in project["dependencies"]] == ["httpx"]
    assert (ROOT / "client" / "src" / "points_client" / "py.typed").exists()
    modules = (
        "import sys, points_client, points_client.testing; print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert {"app", "flask", "sqlalchemy"}.isdisjoint(_run([sys.executable, "-c", modules]).split())
