"""`GET /openapi.json`: the interface described in OpenAPI 3.1, from what the service itself checks and answers."""

from functools import lru_cache
from typing import Any

import orjson
from flask import Blueprint, Response
from pydantic.json_schema import models_json_schema

from app.api.envelope import INTERFACE_VERSION
from app.api.openapi import envelopes, examples, failures, headers, lists, points, reads, refusals, requests, service
from app.settings import Settings, settings

blueprint = Blueprint("openapi", __name__)

_ABOUT = """\
Issues loyalty points to a list of recipients known by e-mail address. **Verify** says at once whether an issue is
possible; **send** debits the organization and writes one transaction per recipient, exactly once.

Every answer is JSON, whatever `Accept` says, and has the same four keys: `success`, `data`, `errors`,
`additional_data`. On an error, `errors` maps the name of a field to sentences about it. What is not even HTTP within
the limits of its line and headers is answered 400, in the same form; a path that is none is 404.

A key belongs to one organization. With a live key (`pts_live_…`) points are issued for real. A development key
(`pts_dev_…`) works in the sandbox, which has a balance of its own and changes nothing else."""


@blueprint.get("/openapi.json")
def show_interface() -> Response:
    return Response(_rendered(settings()), content_type="application/json")


@lru_cache(maxsize=1)
def _rendered(limits: Settings) -> bytes:
    return orjson.dumps(document(limits))


def document(limits: Settings) -> dict[str, Any]:
    """Return the whole description, with the limits that these settings give a request."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Points Issuing Service", "version": INTERFACE_VERSION, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [
            {"name": "Points", "description": "What an organization does."},
            {"name": "Reads", "description": "What became of it."},
            {"name": "The service", "description": "Open to anybody, without a key."},
        ],
        "paths": points.PATHS | reads.PATHS | lists.PATHS | service.PATHS,
        "components": {
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "pts_live_… or pts_dev_…",
                    "description": "`Authorization: Bearer <key>`. A key is shown once, when it is made, and can be "
                    "revoked at once.",
                }
            },
            "schemas": requests.described(limits) | _answers(),
            "responses": refusals.RESPONSES,
            "parameters": headers.PARAMETERS,
            "headers": headers.DESCRIBED,
            "examples": {
                name: {"value": value}
                for name, value in (examples.BODIES | examples.ANSWERS | failures.EXAMPLES).items()
            },
        },
    }


def _answers() -> dict[str, Any]:
    """Return the schemas of the answers, each under the name of its model."""
    models = [(model, "serialization") for model in envelopes.EVERY]
    _, definitions = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas
