"""The bounds of a key: every call of an organization needs a scope, or is open to all, and says so; their words."""

import re

from flask.testing import FlaskClient

from app.api.scopes import SCOPES_OF_CALLS
from app.values.key_bounds import SCOPES
from app.web.application import create_app


def test_every_call_of_an_organization_has_its_scopes_and_no_other_call() -> None:
    served = {
        f"{method} {re.sub('<[^>]+>', '{id}', rule.rule)}"
        for rule in create_app().url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule.startswith("/v1/") and not rule.rule.startswith("/v1/platform/")
    }
    assert set(SCOPES_OF_CALLS) == served
    assert {scope for scopes in SCOPES_OF_CALLS.values() for scope in scopes} <= set(SCOPES)


def test_the_description_of_each_call_names_them(client: FlaskClient) -> None:
    paths = client.get("/openapi.json").get_json()["paths"]
    for call, scopes in SCOPES_OF_CALLS.items():
        method, path = call.split()
        last = paths[path][method.lower()]["description"].rpartition("\n")[2]
        assert re.findall("`([a-z]+)`", last) == list(scopes), call
        assert last.startswith("Scope: ")
