"""Answers as every one of them has to look: the envelope with its four keys, and the headers around it."""

from typing import Any

from werkzeug.test import TestResponse

from app.values.key_hashes import new_key

KEY = new_key(sandbox=False).text
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}


def envelope_of(response: TestResponse, status: int) -> dict[str, Any]:
    """Return the envelope of an answer, after a look at what all answers promise."""
    assert response.status_code == status, response.get_data(as_text=True)
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store, private"
    assert response.headers["Vary"] == "Accept, Authorization"
    assert response.headers["Via"] == "1.1 points"
    assert response.headers["X-Request-Id"]
    document: dict[str, Any] = response.get_json()
    assert list(document) == ["success", "data", "errors", "additional_data"]
    assert document["success"] is (status < 400)
    return document


def errors_of(response: TestResponse, status: int) -> dict[str, list[str]]:
    """Return the errors of a refusal: a field name to a non-empty array of sentences."""
    document = envelope_of(response, status)
    assert document["data"] is None
    if status == 400:
        assert document["additional_data"] is None
    else:
        assert document["additional_data"]["code"]
    errors: dict[str, list[str]] = document["errors"]
    assert errors
    for sentences in errors.values():
        assert sentences
        assert all(sentence.endswith(".") for sentence in sentences)
    return errors


def data_of(response: TestResponse, status: int) -> dict[str, Any]:
    """Return the payload of a success, which names no errors and the version of the interface."""
    document = envelope_of(response, status)
    assert document["errors"] is None
    assert document["additional_data"]["version"]
    data: dict[str, Any] = document["data"]
    return data
