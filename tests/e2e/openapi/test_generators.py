"""Tools read `/openapi.json`: two validators take it, and the clients that two generators make of it compile.

A field that may be left out can be left out, and a word that is not known yet is no fault.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from app.api.openapi.description import document
from app.settings import settings


@pytest.fixture
def described(tmp_path: Path) -> dict[str, Any]:
    description = document(settings())
    (tmp_path / "points.json").write_text(json.dumps(description), encoding="utf-8")
    return description


def test_the_description_is_valid(described: dict[str, Any]) -> None:
    validate(described)


def test_no_field_has_a_default_and_no_word_of_an_answer_is_the_last(described: dict[str, Any]) -> None:
    """Generators take a field with a default for one that is always there, and fail at a word outside of an enum."""
    parts = list(_parts(described["components"]["schemas"]))
    assert [part for part in parts if "default" in part or "enum" in part] == []
    assert sum("x-extensible-enum" in part for part in parts) >= 10


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _parts(inner)
