"""Verify: what it answers, and that it changes nothing."""

from tests.contract.calls import Organization, addresses, nothing_changes, organization, success
from tests.service.up import Service


def test_verify_says_that_an_issue_is_possible_and_changes_and_reserves_nothing(acme: Organization) -> None:
    with nothing_changes(acme.live):
        body = {"recipients": addresses(2), "amount": 50}
        answer = acme.live.verify(body)
        assert success(answer) == {"validated": True, "error": None}
        figures = {"code": None, "required": 100, "available": acme.live.balance, "affordable_recipients": 2}
        assert answer.json()["additional_data"].items() >= figures.items()
        assert all(acme.live.verify(body).json() == answer.json() for _ in range(3))


def test_verify_refuses_what_the_balance_cannot_pay_whole_and_send_pays_as_far_as_it_said(service: Service) -> None:
    caller = organization(service, 149).live
    body = {"recipients": addresses(3), "amount": 50}
    answer = caller.verify(body)
    assert (data := success(answer))["validated"] is False
    assert all(figure in data["error"] for figure in ("150", "149"))
    figures = {"code": "insufficient_balance", "required": 150, "available": 149, "affordable_recipients": 2}
    assert answer.json()["additional_data"].items() >= figures.items()
    # To the last point, and not one beyond it.
    assert success(caller.verify({"recipients": addresses(1), "amount": 149}))["validated"] is True
    assert success(caller.verify({"recipients": addresses(1), "amount": 150}))["validated"] is False
    assert [one["debited"] for one in success(caller.send(body), 201)["transactions"]] == [True, True, False]
    success(caller.send({"recipients": addresses(1), "amount": 49}), 201)
    none_left = caller.verify({"recipients": addresses(1), "amount": 1})
    assert success(none_left)["validated"] is False
    assert none_left.json()["additional_data"]["affordable_recipients"] == 0


def test_verify_refuses_with_200_for_suspended_or_disabled_and_disabled_wins(globex: Organization) -> None:
    def code() -> str | None:
        answer = globex.live.verify({"recipients": addresses(1), "amount": 50})
        data, found = success(answer), answer.json()["additional_data"]["code"]
        assert (data["validated"], data["error"] is None) == (found is None, found is None)
        return str(found) if found else None

    with globex.stopped("disable"):
        assert code() == "organization_disabled"
        with globex.stopped("suspend"):
            assert code() == "organization_disabled"
    with globex.stopped("suspend"):
        assert code() == "organization_suspended"
    assert code() is None
