"""The calls of the contract: each has its path, and each asks for a key or for none."""

import pytest
from flask.testing import FlaskClient

from tests.unit.answers import errors_of

_WITH_A_KEY = [
    ("POST", "/v1/points/verify"),
    ("POST", "/v1/points/send"),
    ("GET", "/v1/batches/1"),
    ("GET", "/v1/organization"),
]


@pytest.mark.usefixtures("no_rows")
@pytest.mark.parametrize(("method", "path"), _WITH_A_KEY)
def test_every_call_below_v1_is_there_and_asks_for_a_key(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method)
    assert list(errors_of(response, 401)) == ["authorization"]
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_what_watches_and_describes_the_service_is_there_and_asks_for_no_key(client: FlaskClient, path: str) -> None:
    assert client.get(path).status_code in (200, 503)
