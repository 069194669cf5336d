"""The whole description: each declared call with its parameters, answers and refusals; and the call that shows it."""

from collections.abc import Iterable
from functools import lru_cache
from threading import Lock
from typing import Any

import orjson
from flask import Response
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from app.api.calls import Answer, Call, call
from app.api.envelope import SERVICE_VERSION
from app.api.openapi import answers, bodies, headers, parameters
from app.api.refusals import Refusal
from app.api.views import CALLS
from app.settings import Settings, settings

_ABOUT = """\
Issues loyalty points to a list of recipients, known by e-mail address. **Verify** says at once whether an issue is
possible. **Send** debits the organization and writes one transaction per recipient, exactly once.

Every answer is JSON, whatever `Accept` says, and has the same four keys: `success`, `data`, `errors`,
`additional_data`. On an error, `errors` maps the name of a field to sentences about it. Malformed HTTP, and a request
line or headers over the limits, are answered 400 in the same form. A path that does not exist is 404.

A key belongs to one organization, and may have bounds: scopes, an end, and points of one batch and of one day in UTC.
Each call says which scope it needs. A live key (`pts_live_…`) issues real points. A development key (`pts_dev_…`) works
in the sandbox, which has a balance and users of its own, knows no live account, and changes nothing else.

The platform that runs the service has keys of its own (`pts_platform_…`), for the calls under `/v1/platform` and no
others."""
# The groups of calls, in the order of the page.
_GROUPS = {
    "Points": "Check an issue, and issue points.",
    "Reversals": "Points that were taken back.",
    "Batches": "The accepted sends.",
    "Transactions": "The outcome of each recipient.",
    "Events": "A complete log of what happened.",
    "Webhooks": """\
The URLs that events are sent to. Each webhook is a cursor over the log: it gets its events in order, one after the
other, each at least once, signed as [Standard Webhooks](https://www.standardwebhooks.com/) says. A 2xx within 15 s is a
success; after anything else the event is sent again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h.""",
    "Requests": "What programs called with the organization's keys.",
    "Organization": "The caller's own organization.",
    "Platform": "Calls of the platform that runs the service, with a platform key: its users and organizations.",
    "Service": "Calls without a key.",
}

_SENT = {
    "operationId": "receiveEvent",
    "summary": "What a webhook receives",
    "description": "An event, byte for byte as `GET /v1/events` shows it. Verify the signature first: any library for"
    " Standard Webhooks can do that. An event may come twice: handle each `webhook-id` once.",
    "parameters": parameters.SIGNED_HEADERS,
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Event"}}},
    },
    "responses": {
        "2XX": {"description": "The event has arrived. After any other answer, a redirect too, it is sent again."},
        "410": {"description": "The receiver wants no more events: the webhook is disabled."},
    },
    "security": [],
}


def document(limits: Settings) -> dict[str, Any]:
    """Return the whole description, with the limits of these settings."""
    sent = {name: body for call in CALLS for name, body in call.sent.items()}
    named = sent | answers.examples() | answers.failures()
    return {
        "openapi": "3.1.0",
        "info": {"title": "Points Issuing Service", "version": SERVICE_VERSION, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [{"name": name, "description": about} for name, about in _GROUPS.items()],
        "paths": _paths(),
        "webhooks": {"event": {"post": _SENT}},
        "components": {
            "securitySchemes": {"key": headers.KEY, "platform_key": headers.PLATFORM_KEY},
            "schemas": _schemas(limits),
            "responses": {name: _refusal(refusal) for name, refusal in answers.refusals().items()},
            "parameters": parameters.HEADERS,
            "headers": headers.HEADERS,
            "examples": {name: {"value": value} for name, value in named.items()},
        },
    }


@call(
    "GET /openapi.json",
    "This description",
    group="Service",
    scopes=(),
    answers=Answer(
        about="The description.",
        content={"application/json": {"schema": {"type": "object", "required": ["openapi"]}}},
    ),
)
def show_interface() -> Response:
    """OpenAPI 3.1, with the limits of this installation."""
    with _rendering:
        return Response(_rendered(settings()), content_type="application/json")


# Without it, all who come first would render it, each for a tenth of a second and more.
_rendering = Lock()


@lru_cache(maxsize=1)
def _rendered(limits: Settings) -> bytes:
    return orjson.dumps(document(limits))


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    groups = list(_GROUPS)
    for each in sorted(CALLS, key=lambda each: groups.index(each.group)):
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return paths


def _operation(each: Call) -> dict[str, Any]:
    # A call's own refusal replaces a usual one with the same status.
    responses = {str(refusal.status): _ref("responses", refusal.name) for refusal in each.refusals}
    responses |= {str(answer.status): _answer(answer) for answer in each.successes}
    operation = {
        "operationId": each.name,
        "tags": [each.group],
        "summary": each.summary,
        "description": each.about.replace("{pages}", parameters.PAGES) + _needs(each),
        "parameters": [
            *(parameters.IDS[name] for name in each.ids),
            *parameters.QUERIES.get(each.query, ()),
            *(_ref("parameters", name) for name in (*each.headers, "X-Request-Id")),
        ],
        "responses": dict(sorted(responses.items())),
    }
    if each.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(each.body.schema_name, each.sent)}
    if each.is_of_platform:
        return operation | {"security": [{"platform_key": []}]}
    return operation if each.has_key else operation | {"security": []}


def _needs(each: Call) -> str:
    """Say which scope a key needs for a call; nothing of a call without a key, or whose docstring says it."""
    scopes = " or ".join(f"`{scope}`" for scope in each.scopes)
    if each.is_of_platform or not each.has_key:
        return f"\n\nScope: {scopes}." if scopes else ""
    return (
        f"\n\nScope: {scopes}, if the key has scopes." if scopes else "\n\nScope: none; every key may make this call."
    )


def _answer(answer: Answer) -> dict[str, Any]:
    response = _response(answer.about, answer.headers)
    if answer.data is not None:
        response["content"] = _content(answer.model, answer.examples)
    if answer.content is not None:
        response["content"] = answer.content
    links = {
        name: {"operationId": operation, "parameters": {"id": where}}
        for name, (operation, where) in answer.links.items()
    }
    return response | ({"links": links} if links else {})


def _refusal(refusal: Refusal) -> dict[str, Any]:
    words = " or ".join(f"`{code}`" for code in refusal.codes)
    response = _response(refusal.about + (f" `code` is {words}." if words else ""), refusal.headers)
    return response | {"content": _content("Failure", refusal.examples)}


def _response(about: str, more: Iterable[str]) -> dict[str, Any]:
    names = (*headers.EVERYWHERE, *more)
    return {"description": about, "headers": {name: _ref("headers", name) for name in names}}


def _content(model: str, examples: Iterable[str]) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": _ref("schemas", model)}
    named = {name: _ref("examples", name) for name in examples}
    return {"application/json": content | ({"examples": named} if named else {})}


def _ref(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def _schemas(limits: Settings) -> dict[str, Any]:
    """Return the schemas of bodies and answers, each under the name of its model."""
    modes: dict[Any, JsonSchemaMode] = dict.fromkeys(answers.envelopes().values(), "serialization")
    _, definitions = models_json_schema([*modes.items()], ref_template="#/components/schemas/{model}")
    of_answers: dict[str, Any] = definitions["$defs"]
    for schema in of_answers.values():
        for part in (schema, *schema.get("properties", {}).values()):
            part.pop("title", None)
    return of_answers | bodies.schemas(limits)
