"""The view of verify: the verdict and its additions, as 200, also when it is a refusal."""

import pytest
from flask.testing import FlaskClient

from tests.unit.answers import AUTHORIZED, data_of, envelope_of
from tests.unit.bodies import body_with
from tests.unit.conftest import Calling

_TWO = ["a@example.com", "b@example.com"]


def test_a_possible_issue_is_validated(client: FlaskClient, calling: Calling) -> None:
    calling.change(balance=100)
    response = client.post("/v1/points/verify", json=body_with(recipients=_TWO, amount=50), headers=AUTHORIZED)
    assert data_of(response, 200) == {"validated": True, "error": None}
    additions = envelope_of(response, 200)["additional_data"]
    additions.pop("version")
    assert additions == {"code": None, "required": 100, "available": 100, "affordable_recipients": 2}


@pytest.mark.parametrize(
    ("changes", "code", "affordable"),
    [
        ({"balance": 99}, "insufficient_balance", 1),
        ({"is_disabled": True}, "organization_disabled", 2),
        ({"is_suspended": True}, "organization_suspended", 2),
        ({"is_suspended": True, "is_disabled": True, "balance": 0}, "organization_disabled", 0),
    ],
)
def test_a_refusal_is_200_with_its_reason_and_its_code(
    client: FlaskClient, calling: Calling, changes: dict[str, object], code: str, affordable: int
) -> None:
    calling.change(**changes)
    response = client.post("/v1/points/verify", json=body_with(recipients=_TWO, amount=50), headers=AUTHORIZED)
    data = data_of(response, 200)
    assert data["validated"] is False
    assert data["error"].endswith(".")
    additions = envelope_of(response, 200)["additional_data"]
    assert (additions["code"], additions["required"]) == (code, 100)
    assert additions["available"] == calling.caller.organization.balance
    assert additions["affordable_recipients"] == affordable


def test_one_recipient_is_verified_like_a_list_of_one(client: FlaskClient, calling: Calling) -> None:
    calling.change(balance=9)
    answers = [
        client.post("/v1/points/verify", json=body, headers=AUTHORIZED).get_json()
        for body in (body_with(), body_with(recipients=..., recipient="a@example.com"))
    ]
    assert answers[0] == answers[1]
    assert answers[0]["additional_data"]["required"] == 10
