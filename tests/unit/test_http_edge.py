"""The HTTP edge without a database: the envelope, its headers, the description, the page of it."""

import re
from collections.abc import Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from flask.testing import FlaskClient

from app.api import docs
from app.api.openapi import description
from app.api.openapi.answers import envelopes, failures, refusals
from app.api.openapi.description import document
from app.settings import settings
from app.web.application import create_app
from points_client import __version__
from tests.unit.answers import AUTHORIZED, data_of, envelope_of, errors_of


@pytest.mark.parametrize("given", ["a", "6f1c2a0e-7b0e", "x" * 128, "Root=1-67891233-abcdef", "a.b_c:d/e+f@g"])
def test_a_sane_request_id_of_the_caller_comes_back(client: FlaskClient, given: str) -> None:
    for path in ("/healthz", "/v1/nothing"):
        assert client.get(path, headers={"X-Request-Id": given}).headers["X-Request-Id"] == given


@pytest.mark.parametrize(
    "given", ["x" * 129, "a b", "<script>", "a;b", "pts_live_abc", "x:pts_dev_abc", "pts_platform_a"]
)
def test_any_other_request_id_is_replaced_by_one_of_ours(client: FlaskClient, given: str) -> None:
    ids = {client.get("/healthz", headers={"X-Request-Id": given}).headers["X-Request-Id"] for _ in range(2)}
    assert len(ids - {given}) == 2


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/points/verify"), ("POST", "/v1/points/send"), ("GET", "/v1/organization"), ("GET", "/v1/batches/1")],
)
def test_503_says_when_to_try_again_while_postgresql_is_away(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method, headers=AUTHORIZED)
    assert envelope_of(response, 503) == failures()["database_away"]
    assert set(refusals()["Away"].headers) <= set(response.headers.keys())
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    # A request that cannot be anybody's shall not cost a connection either.
    assert list(errors_of(client.open(path, method=method), 401)) == ["authorization"]


def test_probes_have_a_line_only_when_they_fail(client: FlaskClient, events: list[MutableMapping[str, Any]]) -> None:
    assert data_of(client.get("/healthz"), 200) == {"status": "ok", "version": __version__}
    assert envelope_of(client.get("/readyz"), 503) == failures()["not_ready"]
    lines = [(event["route"], event["status"]) for event in events if event["event"] == "request"]
    assert lines == [("/readyz", 503)]


@pytest.fixture
def described(client: FlaskClient) -> dict[str, Any]:
    response = client.get("/openapi.json", headers={"Accept": "text/html"})
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store, private"
    described: dict[str, Any] = response.get_json()
    return described


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
        (re.sub(r"<[^>]+>", "{id}", rule.rule), method)
        for rule in create_app().url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if not rule.rule.startswith(("/docs/", "/console"))  # For a browser, and not for a program.
    }
    # A path with two ids names the second.
    operations = {(re.sub(r"{\w+}", "{id}", path), method) for path, method, _ in _operations(described)}
    assert operations == served


def test_every_call_under_v1_needs_a_key_and_no_other_does(described: dict[str, Any]) -> None:
    for path, _, operation in _operations(described):
        kind = "platform_key" if path.startswith("/v1/platform/") else "key"
        assert operation.get("security", described["security"]) == ([{kind: []}] if path.startswith("/v1/") else [])
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


def test_the_description_is_rendered_once_however_many_ask_for_it_first(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendering = Mock(side_effect=document)
    monkeypatch.setattr(description, "document", rendering)
    description._rendered.cache_clear()
    app = client.application
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: app.test_client().get("/openapi.json").data, range(8)))
    assert len(set(answers)) == rendering.call_count == 1


def test_each_example_of_an_answer_is_what_its_model_describes(described: dict[str, Any]) -> None:
    for response in _responses(described):
        content = response.get("content", {}).get("application/json", {})
        for name in content.get("examples", ()):
            model = envelopes()[content["schema"]["$ref"].rsplit("/", 1)[1]]
            model.model_validate(described["components"]["examples"][name]["value"], strict=True, extra="forbid")


_PAGE = Path(docs.__file__).parent / "page"
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@pytest.mark.parametrize("name", sorted(path.name for path in _PAGE.iterdir()))
def test_each_part_of_the_page_asks_nobody_else_and_keeps_no_key(client: FlaskClient, name: str) -> None:
    response = client.get(f"/docs/{name}")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == f"{_TYPES[name.rsplit('.')[1]]}; charset=utf-8"
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"https?:|unsafe|\*|data:", policy)
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    text = (_PAGE / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|[\"'(]//", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert not re.search(r"localStorage|sessionStorage|indexedDB|cookie|history\.|serviceWorker", text)


@pytest.mark.parametrize(
    "name", ["__init__.py", "..%2f__init__.py", "%2e%2e/__init__.py", "page.html", "main.js/", "x"]
)
def test_nothing_else_of_the_folder_is_served(client: FlaskClient, name: str) -> None:
    assert list(errors_of(client.get(f"/docs/{name}"), 404)) == ["path"]
