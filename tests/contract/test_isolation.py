"""One organization never sees or changes what is another's, nor a mode what is the other mode's."""

import pytest

from tests.contract.calls import (
    HELD,
    PAID,
    UNPAID,
    Organization,
    address,
    addresses,
    flags,
    organization,
    refusal,
    success,
)
from tests.service.up import Service


def test_what_is_anothers_is_404_in_the_words_of_what_is_not_there(acme: Organization, globex: Organization) -> None:
    answer = acme.live.send({"recipient": address(), "amount": 1})
    [one] = success(answer, 201)["transactions"]
    batch_id = answer.json()["additional_data"]["batch_id"]
    for key in (acme.development, globex.live, globex.development):
        for path, noun, number in (("batches", "batch", batch_id), ("transactions", "transaction", one["id"])):
            foreign = refusal(key.get(f"/v1/{path}/{number}"), 404, noun)
            absent = refusal(key.get(f"/v1/{path}/999999999"), 404, noun)
            assert foreign[noun][0].replace(str(number), "N") == absent[noun][0].replace("999999999", "N")
            assert key.listed(path, batch=batch_id) == []
            assert key.listed(path, email=one["email"]) == []


@pytest.mark.parametrize("number", ["0", "999999999", str(2**63 - 1), str(2**63), "9" * 400])
def test_a_number_that_names_nothing_is_404(acme: Organization, number: str) -> None:
    refusal(acme.live.get(f"/v1/batches/{number}"), 404, "batch")
    refusal(acme.live.get(f"/v1/transactions/{number}"), 404, "transaction")


def test_sends_and_suspensions_leave_other_organizations_alone(acme: Organization, globex: Organization) -> None:
    before = success(globex.live.get("/v1/organization"))
    success(acme.live.send({"recipient": address(), "amount": 1_000}), 201)
    with acme.stopped():
        assert success(globex.live.get("/v1/organization")) == before
        success(globex.live.send({"recipient": address(), "amount": 1}), 201)


def test_a_development_key_issues_by_the_same_rules_and_nothing_live_changes(service: Service) -> None:
    made = organization(service, 100, sandbox_balance=50)
    live, development = made.live, made.development
    with_account, later, unpaid = addresses(3)
    service.register(with_account)
    verified = development.verify({"recipients": addresses(3), "amount": 20})
    assert success(verified)["validated"] is False
    assert verified.json()["additional_data"]["available"] == 50
    data = success(development.send({"recipients": [with_account, later, unpaid], "amount": 20}), 201)
    assert [one["sandbox"] for one in data["transactions"]] == [True] * 3
    assert flags(data["transactions"]) == [PAID, HELD, UNPAID]
    assert [one["organization"]["balance"] for one in data["transactions"]] == [30, 10, 10]
    assert {one["organization"]["last_refill"] for one in data["transactions"]} == {50}
    assert (data["amount"], data["current_balance"]) == (40, 10)
    assert (development.balance, live.balance) == (10, 100)
    assert service.points_of(with_account) == 0
    # Nobody holds sandbox points for the one who registers later.
    assert service.register(later)["balance"] == 0
    assert flags(development.listed("transactions", email=later)) == [HELD]

    [real] = success(live.send({"recipient": with_account, "amount": 30}), 201)["transactions"]
    assert (real["sandbox"], real["organization"]["balance"], real["organization"]["last_refill"]) == (False, 70, 100)
    assert development.balance == 10
    assert service.points_of(with_account) == 30
    assert [one["id"] for one in live.listed("transactions")] == [real["id"]]
    assert len(development.listed("transactions")) == 3

    # A reset is for a development key alone, and puts the start value back, also of one who may not issue.
    refusal(live.call("POST", "/v1/sandbox/reset"), 403, "authorization")
    assert development.balance == 10
    with made.stopped():
        reset = success(development.call("POST", "/v1/sandbox/reset"))
        assert reset == success(development.get("/v1/organization"))
    assert (reset["balance"], reset["last_refill"]) == (50, 50)
    assert (live.balance, len(development.listed("transactions"))) == (70, 3)
