"""The examples of `/openapi.json` that a healthy service does not answer: what they say is what is answered then."""

import re

import pytest
from flask.testing import FlaskClient

from app.api.openapi.calls import REFUSALS
from app.api.openapi.failures import EXAMPLES
from tests.unit.answers import AUTHORIZED, envelope_of

_PATH = "/v1/organization"


def test_the_database_is_away(client: FlaskClient) -> None:
    response = client.get(_PATH, headers=AUTHORIZED)
    assert envelope_of(response, 503) == EXAMPLES["database_away"]
    assert set(REFUSALS["Away"]["headers"]) <= set(response.headers.keys())


def test_both_servers_are_away(client: FlaskClient) -> None:
    assert envelope_of(client.get("/readyz"), 503) == EXAMPLES["not_ready"]


@pytest.mark.usefixtures("calling")
def test_something_is_wrong_with_the_service(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("app.api.auth.get_caller", fail)
    [sentence] = EXAMPLES["fault"]["errors"]["service"]
    named = re.search(r"request id (\w+) when", sentence)
    assert named is not None
    response = client.get(_PATH, headers=AUTHORIZED | {"X-Request-Id": named[1]})
    assert envelope_of(response, 500) == EXAMPLES["fault"]


@pytest.mark.usefixtures("calling", "redis")
def test_a_key_makes_more_calls_than_it_may(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    for _ in range(50):
        client.get(_PATH, headers=AUTHORIZED)
    response = client.get(_PATH, headers=AUTHORIZED)
    assert envelope_of(response, 429) == EXAMPLES["too_many_calls"]
    assert set(REFUSALS["TooManyCalls"]["headers"]) <= set(response.headers.keys())
