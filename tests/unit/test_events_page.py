"""`docs/events.md`: what it shows for verifying a signature tells ours from others."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.webhooks.posting import signed_headers
from app.webhooks.secrets import new_secret

_PAGE = Path(__file__).parents[2] / "docs" / "events.md"
_BODY = '{"type":"ping","data":{"label":"Frühling"}}'.encode()

_Verify = Callable[[bytes, dict[str, str], str], bool]


def _block(language: str) -> str:
    [code] = re.findall(rf"^```{language}\n(.*?)^```$", _section(), re.MULTILINE | re.DOTALL)
    return str(code)


def _section() -> str:
    return _PAGE.read_text(encoding="utf-8").split("## Verify a signature\n")[1].split("\n## ")[0]


def _python(_folder: Path) -> _Verify:
    found: dict[str, Any] = {}
    exec(_block("python"), found)  # noqa: S102  # What a reader copies.
    verify: _Verify = found["is_from_points"]
    return verify


def _shell(folder: Path) -> _Verify:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, so this block of the documentation was not run")

    def verify(body: bytes, headers: dict[str, str], secret: str) -> bool:
        (folder / "body.json").write_bytes(body)
        variables = {name.upper().replace("-", "_"): value for name, value in headers.items()} | {"SECRET": secret}
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", _block("sh")],
            cwd=folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=True,
        )
        return {"It is from the service.\n": True, "It is not from the service.\n": False}[done.stdout]

    return verify


@pytest.mark.parametrize("way", [_python, _shell])
def test_a_signature_is_told_from_another(tmp_path: Path, way: Callable[[Path], _Verify]) -> None:
    verify, secret, old = way(tmp_path), new_secret(), new_secret()
    headers = dict(signed_headers(_BODY, event_id="evt_7", secrets=[secret, old], at=datetime.now(UTC)))
    assert verify(_BODY, headers, secret)
    assert verify(_BODY, headers, old)
    assert not verify(_BODY, headers, new_secret())
    assert not verify(_BODY.replace(b"ping", b"pong"), headers, secret)
    assert not verify(_BODY, headers | {"webhook-id": "evt_8"}, secret)
    assert not verify(_BODY, headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) - 1)}, secret)


def test_an_old_call_is_refused(tmp_path: Path) -> None:
    secret, long_ago = new_secret(), datetime.now(UTC) - timedelta(minutes=6)
    headers = dict(signed_headers(_BODY, event_id="evt_7", secrets=[secret], at=long_ago))
    assert not _python(tmp_path)(_BODY, headers, secret)
