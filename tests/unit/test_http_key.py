"""The key of a request: whatever is wrong with it, the answer is the same 401."""

from collections.abc import MutableMapping
from typing import Any

import pytest
from flask.testing import FlaskClient

from app.values.keys import new_key
from tests.unit.answers import AUTHORIZED, KEY, data_of, envelope_of, errors_of

_WORDS = {"authorization": ["A valid API key is required, sent as `Authorization: Bearer <key>`."]}

# Written with these names, because a key is another one in every run.
_SPELLINGS = {
    "key": KEY,
    "shorter": KEY[:-1],
    "longer": KEY + "x",
    "swapped": KEY.swapcase(),
    "of_another_mode": KEY.replace("live", "dev"),
}


@pytest.mark.parametrize(
    "authorization",
    [
        None, "", "Bearer", "Bearer ", "{key}", "Basic {key}", "Token {key}", "Bearer{key}", "Bearer: {key}",
        "Bearer {key} {key}", "Bearer {key},", 'Bearer "{key}"', "Bearer {shorter}", "Bearer {longer}",
        "Bearer {swapped}", "Bearer {of_another_mode}", "Bearer \xff", "Bearer {key}\xa0",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("calling")
def test_a_missing_or_malformed_key_is_401_in_the_same_words(client: FlaskClient, authorization: str | None) -> None:
    # Every key that is asked about would be known here, so each of these must be refused for its form.
    headers = {} if authorization is None else {"Authorization": authorization.format(**_SPELLINGS)}
    response = client.get("/v1/organization", headers=headers)
    assert errors_of(response, 401) == _WORDS
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.usefixtures("no_rows")
@pytest.mark.parametrize("sandbox", [False, True])
def test_an_unknown_key_is_401_in_the_same_words(client: FlaskClient, *, sandbox: bool) -> None:
    authorization = f"Bearer {new_key(sandbox=sandbox).text}"
    response = client.get("/v1/organization", headers={"Authorization": authorization})
    assert errors_of(response, 401) == _WORDS
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("authorization", [None, "Basic {key}", "Bearer x", "Bearer {shorter}"])
def test_a_missing_or_malformed_key_is_401_also_while_postgresql_is_away(
    client: FlaskClient, authorization: str | None
) -> None:
    # A request that cannot be anybody's shall not cost a connection either.
    headers = {} if authorization is None else {"Authorization": authorization.format(**_SPELLINGS)}
    assert errors_of(client.get("/v1/organization", headers=headers), 401) == _WORDS


@pytest.mark.usefixtures("no_rows")
@pytest.mark.parametrize("path", ["/v1/points/verify", "/v1/points/send"])
@pytest.mark.parametrize(
    ("content_type", "body"),
    [("text/plain", b"{}"), ("application/json", b"{"), ("application/json", b" " * 9_000_000)],
    ids=["wrong type", "malformed", "too large"],
)
def test_the_key_is_asked_for_before_the_body_is_looked_at(
    client: FlaskClient, path: str, content_type: str, body: bytes
) -> None:
    assert errors_of(client.post(path, data=body, content_type=content_type), 401) == _WORDS


@pytest.mark.usefixtures("calling")
@pytest.mark.parametrize("authorization", ["Bearer {key}", "bearer {key}", "BEARER {key}", "Bearer   {key}  "])
def test_the_scheme_is_read_in_any_case_and_blanks_do_not_matter(client: FlaskClient, authorization: str) -> None:
    headers = {"Authorization": authorization.format(**_SPELLINGS)}
    envelope_of(client.get("/v1/organization", headers=headers), 200)


@pytest.mark.usefixtures("calling")
def test_the_line_of_a_read_names_the_organization_that_asked(
    client: FlaskClient, events: list[MutableMapping[str, Any]]
) -> None:
    data_of(client.get("/v1/organization", headers=AUTHORIZED), 200)
    assert [event["organization_id"] for event in events if event["event"] == "request"] == [7]
