"""The description of what is read back: batches, and the organization itself."""

from typing import Any

from app.api.openapi.headers import answered, parameter
from app.api.openapi.refusals import json_content, refused

PATHS: dict[str, Any] = {
    "/v1/batches/{id}": {
        "get": {
            "operationId": "showBatch",
            "tags": ["Reads"],
            "summary": "One batch, as it is now",
            "description": "Also while it is queued, and with what was claimed since it was issued.",
            "parameters": [
                {
                    "name": "id",
                    "in": "path",
                    "required": True,
                    "description": "As `additional_data.batch_id` of the send named it.",
                    "schema": {"type": "integer", "format": "int64", "minimum": 1},
                    "example": 1,
                },
                parameter("X-Request-Id"),
            ],
            "responses": {
                "200": {
                    "description": "The batch.",
                    "headers": answered(),
                    "content": json_content("BatchAnswer", "batch_issued", "batch_queued", "batch_refused"),
                },
                **refused(401, 405, 429, 500, 503, s400="NoRequest", s404="NoBatch"),
            },
        }
    },
    "/v1/organization": {
        "get": {
            "operationId": "showOrganization",
            "tags": ["Reads"],
            "summary": "The caller's own organization",
            "description": "With the balance of the key's mode.",
            "parameters": [parameter("X-Request-Id")],
            "responses": {
                "200": {
                    "description": "The organization.",
                    "headers": answered(),
                    "content": json_content("OrganizationAnswer", "organization"),
                },
                **refused(401, 405, 429, 500, 503, s400="NoRequest"),
            },
        }
    },
}
