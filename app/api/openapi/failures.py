"""The examples of every error: the sentences of `refusals.toml` in their envelope. A test gets each from a service."""

from typing import Any

from app.api.openapi.calls import REFUSALS


def _failure(sentences: dict[str, str]) -> dict[str, Any]:
    errors = {field: [sentence] for field, sentence in sentences.items()}
    return {"success": False, "data": None, "errors": errors, "additional_data": None}


EXAMPLES = {
    name: _failure(sentences)
    for refusal in REFUSALS.values()
    for name, sentences in refusal.get("examples", {}).items()
}
