"""The tables of calls and of refusals, read from `calls.toml` and `refusals.toml`."""

import tomllib
from pathlib import Path
from typing import Any


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


# The calls by group and name; `about` describes the group.
GROUPS = _table("calls.toml")
ABOUT: str = GROUPS.pop("about")
CALLS = [call for group in GROUPS.values() for call in group.values() if isinstance(call, dict)]
# The successes that come in the envelope.
SUCCESSES = [answer for call in CALLS for status, answer in call.items() if status.isdigit() and "model" in answer]

REFUSALS: dict[str, dict[str, Any]] = {
    name: {"status": status, "model": "Failure", **refusal}
    for status, refusals in _table("refusals.toml").items()
    for name, refusal in refusals.items()
}
# Every value of `additional_data.code` on an error.
CODES = tuple(sorted({code for refusal in REFUSALS.values() for code in refusal.get("codes", ())}))


def _failure(sentences: dict[str, str], code: str | None) -> dict[str, Any]:
    errors = {field: [sentence] for field, sentence in sentences.items()}
    additional = None if code is None else {"code": code}
    return {"success": False, "data": None, "errors": errors, "additional_data": additional}


# The examples of errors: the sentences in the envelope.
FAILURES = {
    name: _failure(sentences, refusal.get("codes", (None,))[0])
    for refusal in REFUSALS.values()
    for name, sentences in refusal.get("examples", {}).items()
}
