"""An empty value does not mean what an absent one does: for every field of every call, as `/openapi.json` has them."""

import copy
import re
from collections.abc import Collection, Iterator
from typing import Any

import httpx
from jsonschema_rs import Draft202012Validator

from tests.contract.calls import Organization, organization
from tests.contract.described import description
from tests.contract.platform import Platform, platform
from tests.service.up import Service

_VALUES: tuple[Any, ...] = ("", [], None, {}, 0, False, " ")
# In a send and a verify the first three count as missing, in these fields of the body.
_COUNT_AS_MISSING = {
    (call, (field,))
    for call in ("/v1/points/send", "/v1/points/verify", "/v1/points/sent-before")
    for field in ("recipient", "recipients", "items", "amount", "atomic", "label")
}
_LISTS = ("organization", "batches", "transactions", "reversals", "webhooks")

Place = tuple[str | int, ...]


def test_a_value_of_another_type_or_out_of_bounds_is_a_fault_of_its_field(service: Service) -> None:
    made, operator, tried = organization(service, 1_000), platform(service), set[tuple[str, Place]]()
    before = _had_by(made, operator)
    with httpx.Client(base_url=service.url, timeout=60, trust_env=False) as client:
        for (method, path, place, _), (value, body) in _cases(service.url).items():
            key = operator if "/platform/" in path else made.development if "/sandbox/" in path else made.live
            headers = {"Authorization": f"Bearer {key.text}"}
            answer = client.request(method, path.replace("{id}", str(made.id)), json=body, headers=headers)
            assert answer.status_code == 400, (method, path, place, value, answer.text)
            assert _is_named(place, answer.json()["errors"]), (method, path, place, value, answer.text)
            tried.add((path, place))
    assert _had_by(made, operator) == before
    assert tried > {("/v1/points/send", ("send_at",)), ("/v1/points/verify", ("items", 0, "reference"))}
    assert len(tried) >= 80


def test_a_parameter_or_a_header_that_means_nothing_is_a_fault_of_its_name(service: Service) -> None:
    made, operator, described = organization(service), platform(service), description(service.url)
    calls = [(path, method, call) for path, methods in described["paths"].items() for method, call in methods.items()]
    with httpx.Client(base_url=service.url, timeout=60, trust_env=False) as client:
        for path, method, call in calls:
            key = operator if "/platform/" in path else made.development if "/sandbox/" in path else made.live
            url = re.sub("{[a-z_]+}", str(made.id), path)
            for query, name, value in _meaningless(call) if path.startswith("/v1/") else ():
                headers = {"Authorization": f"Bearer {key.text}"} | ({} if value is None else {name: value})
                answer = client.request(method, f"{url}{query}", headers=headers, json=None if method == "get" else {})
                field = name if value is None else name.lower().replace("-", "_")
                assert (answer.status_code, field in answer.json()["errors"]) == (400, True), (url, query, answer.text)


def _meaningless(call: dict[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """Return queries with the parameter at fault; then the headers that a call does not take, each with a value."""
    names = [of.get("name") or of["$ref"].rpartition("/")[2] for of in call["parameters"]]
    yield "?nonsense=1", "nonsense", None
    for name in names:  # As a query, a header and an id of the path are unknown.
        yield from ((f"?{name}{rest}", name, None) for rest in ("", "=", f"=1&{name}=1", "=%ff"))
    for name in ("Idempotency-Key", "Prefer", "Points-Rehearse"):
        if name not in names:
            yield "", name, "x"


def _is_named(place: Place, errors: Collection[str]) -> bool:
    """Tell whether the place has a fault, or something in it; what is in `expect` is told of the whole."""
    name = ".".join(map(str, place))
    return any(field in (name, place[0]) or field.startswith(f"{name}.") for field in errors)


def _had_by(made: Organization, operator: Platform) -> list[Any]:
    """Return what the organization has, and what was done to it."""
    whole = f"/v1/platform/organizations/{made.id}"
    answers = [key.get(f"/v1/{name}") for key in (made.live, made.development) for name in _LISTS]
    answers += [operator.get(path) for path in (whole, f"{whole}/keys", f"{whole}/refills")]
    answers.append(operator.get("/v1/platform/actions", organization=made.id))
    assert {answer.status_code for answer in answers} == {200}
    return [answer.json()["data"] for answer in answers]


def _cases(host: str) -> dict[tuple[str, str, Place, str], tuple[Any, Any]]:
    """Return for each place of each call the values that the description does not allow there, each in an example."""
    described, cases = description(host), {}
    calls = [(path, method, call) for path, methods in described["paths"].items() for method, call in methods.items()]
    for path, method, call in calls:
        for content in call.get("requestBody", {}).get("content", {}).values():
            form = Draft202012Validator(content["schema"] | {"components": described["components"]})
            for name in content["examples"]:
                example = described["components"]["examples"][name]["value"]
                for place in dict.fromkeys(_places(described, content["schema"], example)):
                    for value in _VALUES[3 if (path, place) in _COUNT_AS_MISSING else 0 :]:
                        body = _with(example, place, value)
                        if not form.is_valid(body):
                            cases[method.upper(), path, place, repr(value)] = value, body
    return cases


def _places(described: dict[str, Any], schema: dict[str, Any], example: Any, place: Place = ()) -> Iterator[Place]:
    """Return the places of all fields, and those of the first entries of arrays."""
    if "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for form in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from _places(described, form, example, place)
    inner = {name: of for name, of in schema.get("properties", {}).items() if isinstance(example, dict)}
    inner |= {0: schema["items"]} if "items" in schema and isinstance(example, list) else {}
    for key, of in inner.items():
        yield (*place, key)
        if isinstance(example, list) or key in example:
            yield from _places(described, of, example[key], (*place, key))


def _with(example: Any, place: Place, value: Any) -> Any:
    """Return an example in which `value` stands at the place."""
    body = inner = copy.deepcopy(example)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    if "url" in body and place != ("url",):
        body["url"] = "http://127.0.0.1:9/"  # That of the example is looked up.
    return body
