"""The refusals of `refusals.toml`, and their examples as whole answers."""

import tomllib
from pathlib import Path
from typing import Any

_BY_STATUS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))

REFUSALS: dict[str, dict[str, Any]] = {
    name: {"status": status, "model": "Failure", **refusal}
    for status, refusals in _BY_STATUS.items()
    for name, refusal in refusals.items()
}


def _failure(sentences: dict[str, str]) -> dict[str, Any]:
    errors = {field: [sentence] for field, sentence in sentences.items()}
    return {"success": False, "data": None, "errors": errors, "additional_data": None}


EXAMPLES = {
    name: _failure(sentences)
    for refusal in REFUSALS.values()
    for name, sentences in refusal.get("examples", {}).items()
}
