"""Bodies of verify and send as a test writes them, and what becomes of them."""

import json
from typing import Any

import pytest

from app.api.requests.body import read_object
from app.batches.fields import VERIFY, IssueTable
from app.batches.request import IssueRequest, read_issue_request
from app.errors import Faults, InvalidRequest
from app.settings import settings


def body_with(**fields: Any) -> dict[str, Any]:
    """Return a body that is right, but for the fields given; one that is `...` is left out."""
    body = {"recipients": ["a@example.com"], "amount": 10} | fields
    return {name: value for name, value in body.items() if value is not ...}


def read(body: bytes, known: IssueTable = VERIFY) -> IssueRequest:
    """Read the bytes of a body as the calls do."""
    return read_object(body, lambda fields: read_issue_request(fields, settings(), known))


def accepted(body: dict[str, Any] | bytes) -> IssueRequest:
    """Read a body that is right."""
    return read(_encoded(body))


def faults_of(body: dict[str, Any] | bytes) -> Faults:
    """Read a body that is wrong, and return its faults."""
    with pytest.raises(InvalidRequest) as caught:
        read(_encoded(body))
    faults = caught.value.faults
    assert all(sentences and all(sentences) for sentences in faults.values())
    return faults


def _encoded(body: dict[str, Any] | bytes) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()
