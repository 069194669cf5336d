"""schemathesis makes calls from `/openapi.json`, good ones and bad ones, and finds no answer that is not described."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.inside import Service

_HERE = Path(__file__).parent
# About ten seconds on a machine of its own.
_FINISHED_IN_S = 1_800


@pytest.mark.long
@pytest.mark.timeout(_FINISHED_IN_S + 60)
def test_schemathesis_finds_no_5xx_and_no_undocumented_answer(service: Service, tmp_path: Path) -> None:
    caller = service.organization(1_000_000_000_000, sandbox_balance=1_000_000_000_000)
    _try_out(service, caller.development, tmp_path)


def _try_out(service: Service, key: str, folder: Path, *more: str) -> None:
    """Make all calls, or those that `more` chooses, with this key."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli"),
            *("--config-file", str(_HERE / "schemathesis.toml"), "run", f"{service.url}/openapi.json"),
            *("--header", f"Authorization: Bearer {key}", "--no-color", *more),
        ],
        cwd=folder,
        env=service.environment
        | {"SCHEMATHESIS_HOOKS": "tests.e2e.openapi.hooks", "PYTHONPATH": str(_HERE.parents[2])},
        capture_output=True,
        text=True,
        timeout=_FINISHED_IN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
