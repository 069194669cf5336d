"""`docs/events.md`: what it shows for verifying a signature tells ours from others."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from app.webhooks.actions import new_secret
from app.webhooks.posting import signed_headers

_PAGE = Path(__file__).parents[2] / "docs" / "events.md"
_BODY = '{"type":"ping","data":{"label":"Frühling"}}'.encode()

_Verify = Callable[[bytes, dict[str, str], str], bool]


def _block(language: str) -> str:
    [code] = re.findall(rf"^```{language}\n(.*?)^```$", _section(), re.MULTILINE | re.DOTALL)
    return str(code)


def _section() -> str:
    return _PAGE.read_text(encoding="utf-8").split("## Verify a signature\n")[1].split("\n## ")[0]


def _python() -> _Verify:
    found: dict[str, Any] = {}
    exec(_block("python"), found)  # noqa: S102  # What a reader copies.
    verify: _Verify = found["is_from_points"]
    return verify


def test_a_signature_is_told_from_another() -> None:
    verify, secret, old = _python(), new_secret(), new_secret()
    headers = dict(signed_headers(_BODY, event_id="evt_7", secrets=[secret, old], at=datetime.now(UTC)))
    assert verify(_BODY, headers, secret)
    assert verify(_BODY, headers, old)
    assert not verify(_BODY, headers, new_secret())
    assert not verify(_BODY.replace(b"ping", b"pong"), headers, secret)
    assert not verify(_BODY, headers | {"webhook-id": "evt_8"}, secret)
    assert not verify(_BODY, headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) - 1)}, secret)


def test_an_old_call_is_refused() -> None:
    secret, long_ago = new_secret(), datetime.now(UTC) - timedelta(minutes=6)
    headers = dict(signed_headers(_BODY, event_id="evt_7", secrets=[secret], at=long_ago))
    assert not _python()(_BODY, headers, secret)
