"""The examples of errors: the sentences of `refusals.toml` in the envelope."""

from typing import Any

from app.api.openapi.calls import REFUSALS


def _failure(sentences: dict[str, str], code: str | None) -> dict[str, Any]:
    errors = {field: [sentence] for field, sentence in sentences.items()}
    additional = None if code is None else {"code": code}
    return {"success": False, "data": None, "errors": errors, "additional_data": additional}


EXAMPLES = {
    name: _failure(sentences, refusal.get("codes", (None,))[0])
    for refusal in REFUSALS.values()
    for name, sentences in refusal.get("examples", {}).items()
}
