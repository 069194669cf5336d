"""`/openapi.json` itself: it is OpenAPI 3.1, it names every path that is served, and no name in it leads nowhere."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.definitions import OPENAPI_31

from app.api import create_app
from app.api.openapi import document, envelopes
from app.settings import settings


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


def test_every_path_that_is_served_is_described_and_no_other(described: dict[str, Any]) -> None:
    served = {
        (re.sub(r"<[^>]+>", "{id}", rule.rule), method)  # As the contract names what follows a noun.
        for rule in create_app().url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if not rule.rule.startswith("/docs/")  # Parts of the page, for a browser.
    }
    assert {(path, method) for path, method, _ in _operations(described)} == served


def test_each_reference_leads_somewhere_and_each_component_is_referred_to(described: dict[str, Any]) -> None:
    references = set(_references(described))
    components = {
        f"#/components/{kind}/{name}"
        for kind, named in described["components"].items()
        for name in named
        if kind != "securitySchemes"
    }
    assert references == components


def test_it_is_openapi_3_1(described: dict[str, Any]) -> None:
    faults = [
        f"{error.json_path}: {error.message}" for error in Draft202012Validator(OPENAPI_31).iter_errors(described)
    ]
    assert not faults
    assert described["openapi"].startswith("3.1.")


def test_each_schema_is_one_of_json_schema(described: dict[str, Any]) -> None:
    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_each_call_has_a_name_of_its_own_and_says_what_it_is_for(described: dict[str, Any]) -> None:
    operations = [operation for _, _, operation in _operations(described)]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    tags = {tag["name"] for tag in described["tags"]}
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        assert set(operation["tags"]) <= tags


def test_every_answer_names_the_headers_that_all_have(described: dict[str, Any]) -> None:
    named = described["components"]["responses"]
    for _, _, operation in _operations(described):
        for status, response in operation["responses"].items():
            whole = named[response["$ref"].rsplit("/", 1)[1]] if "$ref" in response else response
            assert {"X-Request-Id", "Cache-Control", "Vary", "Via"} <= set(whole["headers"]), status
            assert whole["description"]


def test_every_call_under_v1_needs_a_key_and_no_other_does(described: dict[str, Any]) -> None:
    for path, _, operation in _operations(described):
        assert operation.get("security", described["security"]) == ([{"key": []}] if path.startswith("/v1/") else [])
        assert ("401" in operation["responses"]) is path.startswith("/v1/")


def test_the_limits_are_those_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "12")
    monkeypatch.setenv("POINTS_AMOUNT_MAX", "34")
    settings.cache_clear()
    fields = document(settings())["components"]["schemas"]["IssueToMany"]["properties"]
    assert fields["recipients"]["maxItems"] == 12
    assert fields["recipients"]["uniqueItems"] is True
    assert "No address twice." in fields["recipients"]["description"]
    assert fields["amount"]["maximum"] == 34
    monkeypatch.setenv("POINTS_ALLOW_REPEATS", "true")
    settings.cache_clear()
    fields = document(settings())["components"]["schemas"]["IssueToMany"]["properties"]
    assert fields["recipients"]["uniqueItems"] is False
    assert "No address twice." not in fields["recipients"]["description"]


def test_each_example_of_an_answer_is_what_its_model_describes(described: dict[str, Any]) -> None:
    models = {model.__name__: model for model in envelopes.EVERY}
    seen = set()
    for _, _, operation in _operations(described):
        for response in (*operation["responses"].values(), *described["components"]["responses"].values()):
            for content in response.get("content", {}).values():
                for name in content.get("examples", {}):
                    model = models[content["schema"]["$ref"].rsplit("/", 1)[1]]
                    model.model_validate(
                        described["components"]["examples"][name]["value"], strict=True, extra="forbid"
                    )
                    seen.add(name)
    bodies = described["paths"]["/v1/points/send"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    assert seen == set(described["components"]["examples"]) - set(bodies)
