"""One organization never sees or changes what is another's, nor a mode what is the other mode's."""

import pytest

from tests.contract.calls import Organization, address, refusal, success


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


def test_sending_and_suspending_in_one_organization_leaves_the_other_alone(
    acme: Organization, globex: Organization
) -> None:
    before = success(globex.live.get("/v1/organization"))
    success(acme.live.send({"recipient": address(), "amount": 1_000}), 201)
    with acme.stopped():
        assert success(globex.live.get("/v1/organization")) == before
        success(globex.live.send({"recipient": address(), "amount": 1}), 201)
