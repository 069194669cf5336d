"""The envelope: what stands around every answer, and the bodies in it."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from flask import Response

from app import errors
from app.api.answers import envelope
from app.batches.verify import Verdict
from app.values.timestamps import timestamp
from tests.unit.conftest import CALLER


def document_of(response: Response) -> dict[str, Any]:
    """Return an answer as the caller's program reads it, its keys in the order they were sent."""
    document: dict[str, Any] = json.loads(response.get_data())
    return document


def test_a_success_has_all_four_keys_no_errors_and_the_version_of_the_interface() -> None:
    response = envelope.success({"answer": 1}, status=201, batch_id=7)
    assert response.status_code == 201
    assert response.content_type == "application/json"
    assert document_of(response) == {
        "success": True,
        "data": {"answer": 1},
        "errors": None,
        "additional_data": {"version": envelope.INTERFACE_VERSION, "batch_id": 7},
    }
    assert isinstance(envelope.INTERFACE_VERSION, str)


def test_an_error_has_all_four_keys_and_only_errors_is_filled() -> None:
    response = envelope.failure(400, {"amount": ["Ünknown.", "Two."]})
    assert response.status_code == 400
    assert response.content_type == "application/json"
    assert document_of(response) == {
        "success": False,
        "data": None,
        "errors": {"amount": ["Ünknown.", "Two."]},
        "additional_data": None,
    }


def test_a_400_has_no_length_so_that_it_is_sent_chunked() -> None:
    assert "Content-Length" not in envelope.failure(400, {"body": ["Wrong."]}).headers
    assert "Content-Length" in envelope.failure(401, {"body": ["Wrong."]}).headers


@pytest.mark.parametrize(
    ("error", "status", "field"),
    [
        (errors.InvalidRequest({"amount": ["Wrong."]}), 400, "amount"),
        (errors.InvalidKey(), 401, "authorization"),
        (errors.OrganizationDisabled(), 403, "organization"),
        (errors.OrganizationSuspended(), 403, "organization"),
        (errors.NotFound("batch", 7), 404, "batch"),
        (errors.IdempotencyKeyReused(), 422, "idempotency_key"),
    ],
)
def test_each_expected_error_has_its_status_and_its_field(error: errors.PointsError, status: int, field: str) -> None:
    response = envelope.failure_of(error)
    assert response.status_code == status
    assert list(document_of(response)["errors"]) == [field]
    assert response.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)


def test_an_error_without_a_status_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="The error Forgotten has no status"):
        type("Forgotten", (errors.PointsError,), {})


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 31, 9, 30, tzinfo=UTC), "2026-01-31T09:30:00.000000Z"),
        (datetime(2026, 12, 1, 23, 59, 59, 120, tzinfo=UTC), "2026-12-01T23:59:59.000120Z"),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2025-12-31T23:00:00.000000Z"),
    ],
    ids=["zeros", "microseconds", "another zone"],
)
def test_a_moment_is_written_in_utc_with_six_decimals_and_z(moment: datetime, text: str) -> None:
    assert timestamp(moment) == text


def test_a_verdict_is_validated_or_says_why_not() -> None:
    good = Verdict(refusal=None, required=60, available=100, affordable_recipients=2)
    poor = errors.InsufficientBalance(required=60, available=50)
    bad = Verdict(refusal=poor, required=60, available=50, affordable_recipients=1)
    assert envelope.verdict_payload(good) == {"validated": True, "error": None}
    assert envelope.verdict_payload(bad) == {"validated": False, "error": poor.sentence}
    assert envelope.verdict_additions(good) == {
        "code": None,
        "required": 60,
        "available": 100,
        "affordable_recipients": 2,
    }
    assert envelope.verdict_additions(bad) == {
        "code": "insufficient_balance",
        "required": 60,
        "available": 50,
        "affordable_recipients": 1,
    }


def test_an_organization_shows_the_balance_of_the_mode_it_is_seen_in() -> None:
    assert CALLER.organization.payload() == {
        "id": 7,
        "name": "Acme",
        "is_disabled": False,
        "is_suspended": False,
        "balance": 100,
        "last_refill": 500,
        "created_at": "2026-01-31T09:30:00.000000Z",
    }
