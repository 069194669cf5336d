"""`/openapi.json` itself: it is OpenAPI 3.1, it names every path that is served, and leaves no word unexplained."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.definitions import OPENAPI_31

from app.api.openapi.description import document
from app.api.openapi.envelopes import ENVELOPES
from app.settings import settings
from app.web.application import create_app


@pytest.fixture
def described(client: FlaskClient) -> dict[str, Any]:
    response = client.get("/openapi.json", headers={"Accept": "text/html"})
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store, private"
    described: dict[str, Any] = response.get_json()
    return described


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for inner in part.values():
            yield from _references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _references(inner)


def _operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _responses(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for _, _, operation in _operations(described):
        yield from (response for response in operation["responses"].values() if "$ref" not in response)
    yield from described["components"]["responses"].values()


def test_every_path_that_is_served_is_described_and_no_other(described: dict[str, Any]) -> None:
    served = {
        (re.sub(r"<[^>]+>", "{id}", rule.rule), method)  # As the contract names what follows a noun.
        for rule in create_app().url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if not rule.rule.startswith(("/docs/", "/console"))  # For a browser, and not for a program.
    }
    assert {(path, method) for path, method, _ in _operations(described)} == served


def test_it_is_openapi_3_1_and_each_schema_is_one_of_json_schema(described: dict[str, Any]) -> None:
    faults = Draft202012Validator(OPENAPI_31).iter_errors(described)
    assert [f"{error.json_path}: {error.message}" for error in faults] == []
    assert described["openapi"].startswith("3.1.")
    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_each_property_parameter_and_header_says_what_it_is(described: dict[str, Any]) -> None:
    silent = []

    def look(part: Any, path: str) -> None:
        if isinstance(part, dict):
            named = [*part.get("properties", {}).items()] if isinstance(part.get("properties"), dict) else []
            named += [(part["name"], part)] if "in" in part and "schema" in part else []
            for name, one in named:
                # Beside a reference, the words of the schema that it leads to count.
                target = described["components"]["schemas"].get(one.get("$ref", "").rpartition("/")[2], {})
                if not (one.get("description") or target.get("description")):
                    silent.append(f"{path}: {name}")
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
            if key not in ("example", "examples", "value"):
                look(inner, f"{path}/{key}")

    look(described, "")
    assert silent == []
    assert all(header["description"] for header in described["components"]["headers"].values())


def test_each_reference_leads_somewhere_and_each_component_is_referred_to(described: dict[str, Any]) -> None:
    components = {
        f"#/components/{kind}/{name}"
        for kind, named in described["components"].items()
        for name in named
        if kind != "securitySchemes"
    }
    assert set(_references(described)) == components


def test_each_call_has_a_name_of_its_own_and_says_what_it_is_for(described: dict[str, Any]) -> None:
    operations = [operation for _, _, operation in _operations(described)]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    groups = {tag["name"] for tag in described["tags"] if tag["description"]}
    assert all(operation["summary"] and operation["description"] for operation in operations)
    assert {tuple(operation["tags"]) for operation in operations} == {(group,) for group in groups}


def test_every_answer_names_the_headers_that_all_have(described: dict[str, Any]) -> None:
    for response in _responses(described):
        assert {"X-Request-Id", "Cache-Control", "Vary", "Via"} <= set(response["headers"])
        assert response["description"]


def test_every_call_under_v1_needs_a_key_and_no_other_does(described: dict[str, Any]) -> None:
    for path, _, operation in _operations(described):
        assert operation.get("security", described["security"]) == ([{"key": []}] if path.startswith("/v1/") else [])
        assert ("401" in operation["responses"]) is path.startswith("/v1/")


def test_the_limits_are_those_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def fields(**changed: str) -> Any:
        for name, value in changed.items():
            monkeypatch.setenv(f"POINTS_{name}", value)
        settings.cache_clear()
        return document(settings())["components"]["schemas"]["IssueToMany"]["properties"]

    few = fields(RECIPIENTS_MAX="12", AMOUNT_MAX="34")
    assert (few["recipients"]["maxItems"], few["amount"]["maximum"]) == (12, 34)
    assert few["recipients"]["uniqueItems"] is True
    assert "No address twice." in few["recipients"]["description"]
    repeats = fields(ALLOW_REPEATS="true")
    assert repeats["recipients"]["uniqueItems"] is False
    assert "No address twice." not in repeats["recipients"]["description"]


def test_each_example_of_an_answer_is_what_its_model_describes(described: dict[str, Any]) -> None:
    for response in _responses(described):
        content = response.get("content", {}).get("application/json", {})
        for name in content.get("examples", ()):
            model = ENVELOPES[content["schema"]["$ref"].rsplit("/", 1)[1]]
            model.model_validate(described["components"]["examples"][name]["value"], strict=True, extra="forbid")
