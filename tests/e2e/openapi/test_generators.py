"""Tools read `/openapi.json`: two validators take it, and the clients that two generators make of it compile.

A field that may be left out can be left out, and a word that is not known yet is no fault.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from app.api.openapi.description import document
from app.api.openapi.event_answers import BATCH_IN_EVENT
from app.settings import settings

_OF_NODE = ("openapi-typescript@7.13.0", "typescript@5.9", "@stoplight/spectral-cli@6.16.3")
# Whom to ask, only the operator of a service knows.
_RULES = {"extends": ["spectral:oas"], "rules": {"info-contact": "off"}}
_CALLER = Path(__file__).parent / "typescript" / "caller.ts"

# What a caller writes beside the generated Python.
_CHECK = """
import json, pkgutil, sys
import points_generated
from points_generated.models import Batch, Event, NewWebhook, Problem, SendToOne

for module in pkgutil.walk_packages(points_generated.__path__, "points_generated."):
    __import__(module.name)
batch, event = json.load(sys.stdin)
assert Batch.from_dict(batch).status == "frozen"
assert Event.from_dict(event).type_ == "batch.frozen"
assert Problem.from_dict({"code": "frozen"}).code == "frozen"
assert SendToOne(recipient="ada@example.com", amount=50).to_dict() == {"recipient": "ada@example.com", "amount": 50}
assert NewWebhook(url="https://shop.example.com/").to_dict() == {"url": "https://shop.example.com/"}
"""


def _run(*command: str, cwd: Path, given: str | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, input=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def described(tmp_path: Path) -> dict[str, Any]:
    description = document(settings())
    (tmp_path / "points.json").write_text(json.dumps(description), encoding="utf-8")
    return description


def test_the_description_is_valid(described: dict[str, Any]) -> None:
    validate(described)


def test_no_field_has_a_default_and_no_word_of_an_answer_is_the_last(described: dict[str, Any]) -> None:
    """Generators take a field with a default for one that is always there, and fail at a word outside of an enum."""
    parts = list(_parts(described["components"]["schemas"]))
    assert [part for part in parts if "default" in part or "enum" in part] == []
    assert sum("x-extensible-enum" in part for part in parts) >= 10


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _parts(inner)


@pytest.mark.long
@pytest.mark.usefixtures("described")
def test_a_python_client_is_made_and_meets_words_that_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"post_hooks": []}', encoding="utf-8")
    make = [str(Path(sys.executable).with_name("openapi-python-client")), "generate", "--path", "points.json"]
    made = _run(*make, "--config", "config.json", "--meta", "none", "--output-path", "points_generated", cwd=tmp_path)
    assert "arning" not in made, "a call or a field was left out"
    batch = BATCH_IN_EVENT["batch"] | {"status": "frozen", "transactions": None}
    event = {"type": "batch.frozen", "timestamp": "2026-01-31T09:30:00.482913Z", "id": "evt_7", "sequence": 4}
    event |= {"sandbox": False, "version": "1.0", "organization": {"id": 1}, "data": {}}
    _run(sys.executable, "-c", _CHECK, cwd=tmp_path, given=json.dumps([batch, event]))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return what runs a program of the packages of Node in a folder; without Node the test is skipped."""
    npm, npx = shutil.which("npm"), shutil.which("npx")
    if npm is None or npx is None:
        pytest.skip("Node is not here, so its programs did not read the description")
    packages = tmp_path_factory.mktemp("node")
    install = [npm, "install", "--silent", "--no-fund", "--no-audit", *_OF_NODE]
    if subprocess.run(install, cwd=packages, capture_output=True, timeout=120, check=False).returncode:
        pytest.skip("the packages of Node cannot be fetched, so its programs did not read the description")

    def run(*command: str, cwd: Path) -> str:
        if not (cwd / "node_modules").exists():
            (cwd / "node_modules").symlink_to(packages / "node_modules")
        return _run(npx, "--no-install", *command, cwd=cwd)

    return run


@pytest.mark.long
@pytest.mark.usefixtures("described")
def test_a_linter_of_descriptions_finds_nothing(tmp_path: Path, node: Callable[..., str]) -> None:
    (tmp_path / "rules.json").write_text(json.dumps(_RULES), encoding="utf-8")
    rules = ("--ruleset", "rules.json", "--fail-severity", "hint")
    node("spectral", "lint", "points.json", *rules, cwd=tmp_path)


@pytest.mark.long
@pytest.mark.usefixtures("described")
def test_a_typescript_client_is_made_and_what_a_caller_writes_with_it_compiles(
    tmp_path: Path, node: Callable[..., str]
) -> None:
    node("openapi-typescript", "points.json", "-o", "points.ts", cwd=tmp_path)
    shutil.copy(_CALLER, tmp_path)
    node("tsc", "--strict", "--noEmit", "--skipLibCheck", "caller.ts", cwd=tmp_path)
