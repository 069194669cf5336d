"""The description of the lists, of one of their transactions, and of the sandbox's reset."""

from typing import Any

from app.api.openapi.headers import answered, parameter
from app.api.openapi.refusals import json_content, refused
from app.api.queries import FORMS, LIMIT_DEFAULT, LIMIT_MAX
from app.pages.filters import LOOKED_AT_MAX
from app.settings import INT64_MAX

_TO_GO_ON = f"""\
Newest first. A page holds up to `limit` rows; `next_cursor` leads to the next one with the same filters, and is null
at the end. A page may hold fewer rows, even none, and yet have a next one: it looks at no more than {LOOKED_AT_MAX:,}
rows, however rare those that are asked for are. Whatever is issued or claimed between two pages, no row comes twice,
and none that was there before the first page is left out. A cursor stays good for ever. Parameters that are not
listed are ignored; the faults of all others are named in one 400."""


def _asked(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _query(email: str, created: str, flag: str) -> list[dict[str, Any]]:
    """Return the parameters of a list, with what they mean in it."""
    moment = {"type": "string", "format": "date-time", "pattern": FORMS["created_from"]}
    return [
        _asked(
            "limit",
            "Rows of a page at the most.",
            {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
        ),
        _asked(
            "cursor",
            "The `next_cursor` of the page before.",
            {"type": "string", "pattern": FORMS["cursor"]},
        ),
        _asked("email", email, {"type": "string", "format": "idn-email", "pattern": "@"}),
        _asked("batch", "Of this batch.", {"type": "integer", "format": "int64", "minimum": 1, "maximum": INT64_MAX}),
        _asked("created_from", f"{created} at this time or later. ISO 8601 with a zone.", moment),
        _asked("created_to", f"{created} at this time or earlier. ISO 8601 with a zone.", moment),
        *(_asked(name, flag.format(name=name), {"type": "boolean"}) for name in ("debited", "credited", "allocated")),
        parameter("X-Request-Id"),
    ]


def _list(operation_id: str, summary: str, description: str, query: list[dict[str, Any]], schema: str) -> Any:
    """Return the path of a list; its example is named as the list is in `data`."""
    example = {"BatchListAnswer": "batches", "TransactionListAnswer": "transactions"}[schema]
    return {
        "get": {
            "operationId": operation_id,
            "tags": ["Reads"],
            "summary": summary,
            "description": f"{description}\n\n{_TO_GO_ON}",
            "parameters": query,
            "responses": {
                "200": {
                    "description": "A page of the list.",
                    "headers": answered(),
                    "content": json_content(schema, example),
                },
                **refused(401, 405, 429, 500, 503, s400="BadQuery"),
            },
        }
    }


PATHS: dict[str, Any] = {
    "/v1/batches": _list(
        "listBatches",
        "All batches, page by page",
        "Those of the organization in the key's mode, as they are now, by the time they were accepted at. With `email` "
        "they come by their ids.",
        _query(
            "In which this address has a transaction, so an issued one.",
            "Accepted",
            "In which at least one transaction has this `{name}`, and the other flags that are asked for.",
        ),
        "BatchListAnswer",
    ),
    "/v1/transactions": _list(
        "listTransactions",
        "All transactions, page by page",
        "Those of the organization in the key's mode, as they are now, by the time they were issued at. With `email` "
        "they come by their ids.",
        _query("Of this address.", "Issued", "That have this `{name}`."),
        "TransactionListAnswer",
    ),
    "/v1/transactions/{id}": {
        "get": {
            "operationId": "showTransaction",
            "tags": ["Reads"],
            "summary": "One transaction, as it is now",
            "description": "With what was claimed since it was issued.",
            "parameters": [
                {
                    "name": "id",
                    "in": "path",
                    "required": True,
                    "description": "The `id` of a transaction.",
                    "schema": {"type": "integer", "format": "int64", "minimum": 1},
                    "example": 131072,
                },
                parameter("X-Request-Id"),
            ],
            "responses": {
                "200": {
                    "description": "The transaction.",
                    "headers": answered(),
                    "content": json_content("TransactionAnswer", "transaction"),
                },
                **refused(401, 405, 429, 500, 503, s400="NoRequest", s404="NoTransaction"),
            },
        }
    },
    "/v1/sandbox/reset": {
        "post": {
            "operationId": "resetSandbox",
            "tags": ["Points"],
            "summary": "Put the sandbox balance back to its start",
            "description": "For a development key. The difference is kept as a refill; batches and transactions stay. "
            "Also while the organization is disabled or suspended, since nothing is issued.",
            "parameters": [parameter("X-Request-Id")],
            "responses": {
                "200": {
                    "description": "The organization, with its sandbox balance at the start value.",
                    "headers": answered(),
                    "content": json_content("OrganizationAnswer", "sandbox_reset"),
                },
                **refused(401, 405, 413, 429, 500, 503, s400="NoRequest", s403="LiveKey"),
            },
        }
    },
}
