"""The description of what needs no key: whether the service works, and how it describes itself."""

from typing import Any

from app.api.docs import SECURITY
from app.api.openapi.headers import always, answered, parameter
from app.api.openapi.refusals import json_content, refused


def _open(operation_id: str, summary: str, description: str, responses: dict[str, Any]) -> dict[str, Any]:
    """Return a path that is read without a key."""
    return {
        "get": {
            "operationId": operation_id,
            "tags": ["The service"],
            "summary": summary,
            "description": description,
            "security": [],
            "parameters": [parameter("X-Request-Id")],
            "responses": responses | refused(405, 500, s400="NoRequest"),
        }
    }


def _ok(description: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"200": {"description": description, "headers": answered(), "content": content}}


PATHS: dict[str, Any] = {
    "/healthz": _open(
        "showHealth",
        "Whether the process answers",
        "Says nothing of what the process needs.",
        _ok("It does.", json_content("HealthAnswer", "alive")),
    ),
    "/readyz": _open(
        "showReadiness",
        "Whether the service can work",
        "Asks PostgreSQL and Redis.",
        _ok("Both answer.", json_content("ReadinessAnswer", "ready")) | refused(s503="NotReady"),
    ),
    "/metrics": _open(
        "showMetrics",
        "The figures of the whole service",
        "In the text form of Prometheus. What cannot be had at present is absent.",
        _ok("The figures.", {"text/plain": {"schema": {"type": "string"}}}),
    ),
    "/openapi.json": _open(
        "showInterface",
        "This description",
        "OpenAPI 3.1, with the limits of this very service.",
        _ok("The description.", {"application/json": {"schema": {"type": "object", "required": ["openapi"]}}}),
    ),
    "/docs": _open(
        "showDocs",
        "All of this, to read and to try",
        "A page for a browser. It asks no other address than this service's.",
        {
            "200": {
                "description": "The page.",
                "headers": answered()
                | {name: always("Keeps the page to itself.", value) for name, value in SECURITY.items()},
                "content": {"text/html": {"schema": {"type": "string"}}},
            }
        },
    ),
}
