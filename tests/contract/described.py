"""Each answer beside its description: `/openapi.json` knows the call, the status, the fields and the headers."""

import re
from functools import cache
from typing import Any

import httpx
from jsonschema_rs import Draft202012Validator


@cache
def description(host: str) -> dict[str, Any]:
    """Return `/openapi.json` of a running service."""
    described: dict[str, Any] = httpx.get(f"{host}/openapi.json", trust_env=False, timeout=60).json()
    return described


@cache
def _response(host: str, path: str, method: str, status: str) -> tuple[dict[str, Any], Draft202012Validator | None]:
    """Return the headers and the schema that the description has for a call and a status."""
    described = description(host)
    methods = described["paths"][path]
    # A call with another method is described with each of the path's own.
    responses = (methods.get(method) or next(iter(methods.values())))["responses"]
    assert status in responses, f"{method} {path} is not described to answer {status}"
    response = _whole(described, responses[status])
    headers = {name: _whole(described, header) for name, header in response["headers"].items()}
    content = response.get("content", {}).get("application/json")
    if content is None:
        return headers, None
    return headers, Draft202012Validator(content["schema"] | {"components": described["components"]})


def _whole(described: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    whole: dict[str, Any] = described["components"][kind][name]
    return whole


def is_as_described(answer: httpx.Response) -> None:
    """Require that an answer is what the description says of the call; of a path that is none it says nothing."""
    url = answer.request.url
    host, path = f"{url.scheme}://{url.netloc.decode()}", url.path
    for template in description(host)["paths"]:
        if re.fullmatch(re.sub(r"\{\w+\}", r"\\d+", template), path):
            headers, schema = _response(host, template, answer.request.method.lower(), str(answer.status_code))
            if schema is not None:
                schema.validate(answer.json())
            for name, header in headers.items():
                assert name in answer.headers or not header["required"], name
                if name in answer.headers:
                    Draft202012Validator(header["schema"]).validate(answer.headers[name])
