"""`GET /openapi.json`: the interface in OpenAPI 3.1, built from the tables of fields, pydantic models and two tables.

To add a call, write its block in `calls.toml`, and one in `refusals.toml` for each new refusal. Describe its answer in
the file of its noun, such as `batch_answers.py`, each field with an example, and its body in `bodies.py`. If an example
differs from the fields' own examples, list the differences in `examples.py`. `tests/contract/described.py` holds every
answer against its description.
"""

from functools import lru_cache

import orjson
from flask import Blueprint, Response

from app.api.openapi.description import document
from app.settings import Settings, settings

blueprint = Blueprint("openapi", __name__)


@blueprint.get("/openapi.json")
def show_interface() -> Response:
    return Response(_rendered(settings()), content_type="application/json")


@lru_cache(maxsize=1)
def _rendered(limits: Settings) -> bytes:
    return orjson.dumps(document(limits))
