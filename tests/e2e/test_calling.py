"""The README and `docs/calling.md` for callers: each block in them that can be run is run, as it stands."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Organization, Service

_ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _section(path: str, heading: str | None) -> str:
    text = (_ROOT / path).read_text(encoding="utf-8")
    return text if heading is None else text.split(f"## {heading}\n")[1].split("\n## ")[0]


def _blocks(path: str, heading: str | None, *languages: str) -> list[Any]:
    found = [match for match in _BLOCK.findall(_section(path, heading)) if match[0] in languages]
    assert found
    return [
        pytest.param(language, code, id=f"{path}-{number}-{language}")
        for number, (language, code) in enumerate(found, start=1)
    ]


@pytest.fixture
def caller(service: Service) -> Organization:
    return service.organization(0, sandbox_balance=1_000)


def _run(service: Service, caller: Organization, language: str, code: str) -> str:
    """Run a block with the address and the key of the running service in the place of those that are printed."""
    written = code.replace("http://127.0.0.1:8000", service.url).replace("pts_dev_…", caller.development)
    assert "…" not in written
    if language == "sh" and shutil.which("curl") is None:
        pytest.skip("no curl is installed here, so this block of the documentation was not run")
    environment = os.environ | {"URL": service.url, "KEY": caller.development}
    program = [sys.executable, "-"] if language == "python" else ["bash", "-euo", "pipefail", "-s"]
    done = subprocess.run(
        program, input=written, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("language", "code"),
    [*_blocks("README.md", "A first call", "sh", "python"), *_blocks("docs/calling.md", None, "sh", "python")],
)
def test_a_block_runs_as_it_stands(service: Service, caller: Organization, language: str, code: str) -> None:
    printed = _run(service, caller, language, code)
    if "curl" in code:
        assert json.loads(printed)["success"] is True
    if "/send" in code and "send_at" not in code:
        assert service.balance(caller.development) < 1_000


def test_the_caller_of_the_page_waits_as_either_form_of_retry_after_asks(
    service: Service, caller: Organization
) -> None:
    [block, _] = _blocks("docs/calling.md", None, "python")
    functions = block.values[1].split("\nbody = ")[0]
    tries = """
from datetime import timedelta
from email.utils import format_datetime
soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
past = "Wed, 21 Oct 2015 07:28:00 GMT"
several = ("7", past, "soon", "", "-1")
print([round(asked_s(httpx.Response(503, headers={"Retry-After": asked}), 8)) for asked in several])
print(20 < asked_s(httpx.Response(503, headers={"Retry-After": soon}), 8) <= 30, asked_s(httpx.Response(503), 4))
print(asked_s(None, 2))
"""
    assert _run(service, caller, "python", functions + tries).split("\n")[:3] == ["[7, 0, 8, 8, 8]", "True 4", "2"]


def test_the_answer_that_is_printed_below_a_call_is_the_one_it_gets(service: Service, caller: Organization) -> None:
    found = _BLOCK.findall(_section("docs/calling.md", None))
    printed = [(found[place - 1], code) for place, (language, code) in enumerate(found) if language == "json"]
    assert printed
    for (language, code), answer in printed:
        assert json.loads(_run(service, caller, language, code)) == json.loads(answer)


def test_the_python_of_the_page_reports_what_became_of_each_recipient(service: Service, caller: Organization) -> None:
    [block, _] = _blocks("docs/calling.md", None, "python")
    # Whether Ada and Grace have accounts here is the business of other tests.
    assert re.fullmatch(r"2 recipients, 0 unpaid, [012] held\n", _run(service, caller, *block.values))
    assert service.balance(caller.development) == 900
