"""The bounds of a key: every call of an organization needs a scope, or is open to all, and says so; their words."""

import re

from flask.testing import FlaskClient

from app.api.auth import SCOPES_OF_ENDPOINTS
from app.api.views import CALLS
from app.values.key_bounds import SCOPES
from app.web.application import create_app

_OF_ORGANIZATIONS = [call for call in CALLS if call.has_key and not call.is_of_platform]


def test_every_call_of_an_organization_has_its_scopes_and_no_other_call() -> None:
    served = {
        f"{method} {re.sub('<[^>]+>', '{id}', rule.rule)}"
        for rule in create_app().url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule.startswith("/v1/") and not rule.rule.startswith("/v1/platform/")
    }
    assert {call.route for call in _OF_ORGANIZATIONS} == served
    assert {f"calls.{call.name}": call.scopes for call in _OF_ORGANIZATIONS} == SCOPES_OF_ENDPOINTS
    assert {scope for call in _OF_ORGANIZATIONS for scope in call.scopes} <= set(SCOPES)
    assert [call.route for call in _OF_ORGANIZATIONS if not call.scopes] == ["GET /v1/organization"]


def test_the_description_of_each_call_names_them(client: FlaskClient) -> None:
    paths = client.get("/openapi.json").get_json()["paths"]
    for call in _OF_ORGANIZATIONS:
        last = paths[call.path][call.method.lower()]["description"].rpartition("\n")[2]
        assert re.findall("`([a-z]+)`", last) == list(call.scopes), call.route
        assert last.startswith("Scope: ")
