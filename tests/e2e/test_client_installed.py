"""The client as somebody else has it: a wheel in an empty environment, the blocks of its README, and its types."""

import re
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.service.inside import Service
from tests.unit.deployment.files import ROOT

_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _needed(name: str) -> set[str]:
    """Return a distribution and those that it needs here, without extras."""
    needs = map(Requirement, distribution(name).requires or ())
    names = {one.name for one in needs if one.marker is None or one.marker.evaluate({"extra": ""})}
    return {name}.union(*map(_needed, names)) if names else {name}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment of the wheel and of httpx.

    No test may need the network: httpx and what it needs are linked from the environment of the tests, and not fetched.
    """
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(ROOT / "client", folder / "client", ignore=shutil.ignore_patterns("*.egg-info"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels = folder / "wheels"
    _run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(wheels), str(source)])
    [wheel] = wheels.glob("*.whl")
    assert "points_client/py.typed" in zipfile.ZipFile(wheel).namelist()
    venv.create(folder / "venv", with_pip=False)
    found = folder / "venv" / "bin" / "python"
    _run([*pip, "--python", str(found), "install", "--no-deps", "--no-index", str(wheel)])
    linked = folder / "httpx-and-its-own"
    linked.mkdir()
    for name in _needed("httpx"):
        for file in distribution(name).files or ():
            top = file.parts[0]
            target = Path(str(distribution(name).locate_file(top)))
            if top != ".." and target.exists() and not (linked / top).exists():
                (linked / top).symlink_to(target)
    [site_packages] = (folder / "venv").glob("lib/python*/site-packages")
    (site_packages / "linked.pth").write_text(f"{linked}\n")
    return found


def _run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.mark.parametrize("where", ["here", pytest.param("installed", marks=pytest.mark.long)])
def test_the_page_runs_from_its_first_block_to_its_last(
    service: Service, request: pytest.FixtureRequest, where: str, tmp_path: Path
) -> None:
    python = sys.executable if where == "here" else str(request.getfixturevalue("installed"))
    caller = service.organization(sandbox_balance=1_000)
    blocks = _PYTHON.findall((ROOT / "client" / "README.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 8
    page = "\n".join(_TOLD + block if "consumer.catch_up()" in block else block for block in blocks)
    page = f"{page}\n{_RECEIVED}"
    for printed, running in (("http://127.0.0.1:8000", service.url), ("pts_dev_…", caller.development)):
        page = page.replace(printed, running)
    assert "…" not in page
    printed = _run([python, "-W", "error", "-"], input=page, cwd=tmp_path)
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

_PROGRAM = """
from collections.abc import Iterator
from datetime import UTC, datetime

from points_client import AsyncPoints, Batch, Event, Item, Points, Sent, Transaction, verify_webhook
from points_client.testing import KEY, URL, FakePoints


def pay(points: Points, emails: list[str]) -> int:
    sent: Sent = points.send(items=[Item(email=email, amount=1) for email in emails], send_at=datetime.now(UTC))
    batch: Batch = points.batches.wait(sent.batch_id)
    transactions: Iterator[Transaction] = points.send_all(emails, run="x", amount=1)
    event: Event = verify_webhook(b"", {}, "whsec_")
    reveal_type(points.organization().balance)
    return sum(one.amount for one in transactions) + (batch.amount or 0) + event.sequence


async def pay_later(points: AsyncPoints) -> list[str]:
    sent = await points.send(recipients=["a@example.com"], amount=1)
    return [one.email async for one in points.transactions.list(batch=sent.batch_id)]


print(pay(Points(KEY, URL, transport=FakePoints()), []), pay_later(AsyncPoints(KEY, URL, transport=FakePoints())))
"""


@pytest.mark.long
def test_a_program_of_somebody_else_is_typed_strictly(installed: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="No module named 'flask'"):
        _run([str(installed), "-c", "import flask"])
    (tmp_path / "program.py").write_text(_PROGRAM)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed), "program.py"]
    printed = _run(mypy, cwd=tmp_path)
    assert 'Revealed type is "int"' in printed
    assert "Success" in printed
    (tmp_path / "program.py").write_text(_PROGRAM.replace("amount=1)", 'amount="1")'))
    with pytest.raises(AssertionError, match="incompatible type"):
        _run(mypy, cwd=tmp_path)
