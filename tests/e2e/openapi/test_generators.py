"""Tools read `/openapi.json`: a validator takes it, and generators of clients find nothing that they get wrong."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.api.openapi.description import document
from app.settings import settings


def test_the_description_is_valid(tmp_path: Path) -> None:
    """The validator is a program of its own, for its import takes seconds."""
    described = tmp_path / "points.json"
    described.write_text(json.dumps(document(settings())), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "openapi_spec_validator", described], check=True)


def test_no_field_has_a_default_and_no_word_of_an_answer_is_the_last() -> None:
    """Generators take a field with a default for one that is always there, and fail at a word outside of an enum."""
    parts = list(_parts(document(settings())["components"]["schemas"]))
    assert [part for part in parts if "default" in part or "enum" in part] == []
    assert sum("x-extensible-enum" in part for part in parts) >= 10


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _parts(inner)
