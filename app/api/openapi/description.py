"""The whole description: each call of `calls.toml` with its parameters, answers and refusals."""

from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from app.api.answers.envelope import INTERFACE_VERSION
from app.api.openapi import bodies, calls, envelopes, examples, headers, parameters
from app.api.scopes import SCOPES_OF_CALLS
from app.settings import Settings

# The usual refusals: of every call, of those with a key, and of those with a body.
_OF_ALL = ("NoRequest", "WrongMethod", "Fault")
_WITH_KEY = ("Unauthorized", "TooManyCalls", "Away")
_OF_ORGANIZATION, _OF_PLATFORM = ("WrongKey",), ("NotAllowed",)
_WITH_BODY = ("BadRequest", "TooLarge", "WrongType", "TooSlow")

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
    bodies_of_calls = examples.BODIES | examples.REVERSE_BODIES | examples.BODIES_OF_DECLARED | examples.SANDBOX_BODIES
    bodies_of_calls |= examples.PLATFORM_BODIES
    named = bodies_of_calls | examples.ANSWERS | calls.FAILURES
    return {
        "openapi": "3.1.0",
        "info": {"title": "Points Issuing Service", "version": INTERFACE_VERSION, "description": calls.ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [{"name": name, "description": group["about"]} for name, group in calls.GROUPS.items()],
        "paths": _paths(),
        "webhooks": {"event": {"post": _SENT}},
        "components": {
            "securitySchemes": {"key": headers.KEY, "platform_key": headers.PLATFORM_KEY},
            "schemas": _schemas(limits),
            "responses": {name: _response(refusal) for name, refusal in calls.REFUSALS.items()},
            "parameters": parameters.HEADERS,
            "headers": headers.HEADERS,
            "examples": {name: {"value": value} for name, value in named.items()},
        },
    }


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for group, named in calls.GROUPS.items():
        for name, call in named.items():
            if name != "about":
                method, path = call["route"].split()
                operation = _operation(call, path)
                paths.setdefault(path, {})[method.lower()] = {"operationId": name, "tags": [group], **operation}
    return paths


def _operation(call: dict[str, Any], path: str) -> dict[str, Any]:
    has_key, is_of_platform = path.startswith("/v1/"), path.startswith("/v1/platform/")
    of_kind = (_OF_PLATFORM if is_of_platform else _OF_ORGANIZATION) * has_key
    usual = _OF_ALL + _WITH_KEY * has_key + of_kind + _WITH_BODY * ("body" in call)
    refusals = (*usual, *call.get("refuses", ()))  # A call's own refusal replaces a usual one with the same status.
    responses = {calls.REFUSALS[name]["status"]: _ref("responses", name) for name in refusals}
    responses |= {status: _response(answer) for status, answer in call.items() if status.isdigit()}
    taken = (*call.get("takes", ()), "X-Request-Id")
    operation = {
        "summary": call["summary"],
        "description": call["about"].replace("{pages}", parameters.PAGES) + _needs(call["route"]),
        "parameters": [parameter for name in taken for parameter in parameters.PARAMETERS[name]],
        "responses": dict(sorted(responses.items())),
    }
    if "body" in call:
        operation["requestBody"] = {"required": True, "content": _content(call["body"])}
    if is_of_platform:
        return operation | {"security": [{"platform_key": []}]}
    return operation if has_key else operation | {"security": []}


def _needs(route: str) -> str:
    """Say which scope a key with scopes needs for a call; nothing of a call that takes no key of an organization."""
    scopes = SCOPES_OF_CALLS.get(route)
    if scopes is None:
        return ""
    if not scopes:
        return "\n\nScope: none; every key may make this call."
    return f"\n\nScope: {' or '.join(f'`{scope}`' for scope in scopes)}, if the key has scopes."


def _response(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a success or a refusal."""
    names = (*headers.EVERYWHERE, *answer.get("headers", ()))
    codes = " or ".join(f"`{code}`" for code in answer.get("codes", ()))
    about = answer["about"] + (f" `code` is {codes}." if codes else "")
    response = {"description": about, "headers": {name: _ref("headers", name) for name in names}}
    if "model" in answer:
        response["content"] = _content(answer)
    return response | {name: answer[name] for name in ("content", "links") if name in answer}


def _content(body: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": _ref("schemas", body["model"])}
    if "examples" in body:
        content["examples"] = {name: _ref("examples", name) for name in body["examples"]}
    return {"application/json": content}


def _ref(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def _schemas(limits: Settings) -> dict[str, Any]:
    """Return the schemas of bodies and answers, each under the name of its model."""
    modes: dict[Any, JsonSchemaMode] = dict.fromkeys(envelopes.ENVELOPES.values(), "serialization")
    _, definitions = models_json_schema([*modes.items()], ref_template="#/components/schemas/{model}")
    answers: dict[str, Any] = definitions["$defs"]
    for schema in answers.values():
        for part in (schema, *schema.get("properties", {}).values()):
            part.pop("title", None)
    return answers | bodies.schemas(limits)
