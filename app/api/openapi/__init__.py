"""`GET /openapi.json`: the interface in OpenAPI 3.1, made of pydantic's models and one table of calls.

To add a call, add it to `calls.toml`, and a refusal that no call had yet to `refusals.toml`. Add a model of what it
answers to `answers.py`, with a description and an example of each field, and one of its body to `requests.py`. Name an
example in `examples.py` and play it in `tests/e2e/openapi/scenes.py`: the tests name whatever is missing.
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
