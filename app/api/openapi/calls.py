"""The tables of calls and of refusals, read from `calls.toml` and `refusals.toml`."""

import re
import tomllib
from pathlib import Path
from typing import Any

from app.api.calls import CALLS as DECLARED
from app.api.views import webhooks
from app.errors import NotFound, PointsError


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


# The calls by group and name; `about` describes the group.
GROUPS = _table("calls.toml")
ABOUT: str = GROUPS.pop("about")
assert webhooks.__name__, "its calls are declared"
for _declared in DECLARED:
    GROUPS[_declared.group][_declared.name] = _declared.block
CALLS = [call for group in GROUPS.values() for call in group.values() if isinstance(call, dict)]
# The successes that come in the envelope.
SUCCESSES = [answer for call in CALLS for status, answer in call.items() if status.isdigit() and "model" in answer]

REFUSALS: dict[str, dict[str, Any]] = {
    name: {"status": status, "model": "Failure", **refusal}
    for status, refusals in _table("refusals.toml").items()
    for name, refusal in refusals.items()
}


def _named(refusal: PointsError | str) -> str:
    """Return the name of a refusal. An error, declared as it may be raised, is described by its docstring."""
    if isinstance(refusal, str):
        return refusal
    name, about = type(refusal).__name__, refusal.__doc__ or ""
    if isinstance(refusal, NotFound):
        name, about = f"No{refusal.noun.capitalize()}", f"The organization has no such {refusal.noun} in this mode."
    [(field, sentences)] = refusal.faults.items()
    REFUSALS[name] = {
        "status": str(refusal.status),
        "model": "Failure",
        "about": about,
        "codes": [refusal.code, *_USUAL_CODES.get(refusal.status, ())],
        "examples": {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): {field: sentences[0]}},
        **({"headers": ["Retry-After"]} if refusal.status == 503 else {}),
    }
    return name


# What every call may refuse with the same status.
_USUAL_CODES = {403: ("insufficient_scope", "wrong_key"), 503: ("out_of_reach",)}
for _call in CALLS:
    if "refuses" in _call:
        _call["refuses"] = [_named(refusal) for refusal in _call["refuses"]]
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
