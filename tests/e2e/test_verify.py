"""Verify over HTTP: what it answers, and that it changes nothing."""

from tests.e2e.conftest import Service


def test_verify_says_that_an_issue_is_possible(service: Service) -> None:
    caller = service.organization(100)
    answer = service.verify(caller.live, {"recipients": ["a@example.com", "b@example.com"], "amount": 50})
    assert answer.status_code == 200
    assert answer.json() == {
        "success": True,
        "data": {"validated": True, "error": None},
        "errors": None,
        "additional_data": {
            "version": "1.0",
            "code": None,
            "required": 100,
            "available": 100,
            "affordable_recipients": 2,
        },
    }


def test_verify_refuses_what_the_balance_cannot_pay_whole_and_says_how_far_it_goes(service: Service) -> None:
    caller = service.organization(99)
    document = service.verify(caller.live, {"recipients": ["a@example.com", "b@example.com"], "amount": 50}).json()
    assert document["data"]["validated"] is False
    assert "100" in document["data"]["error"]
    assert "99" in document["data"]["error"]
    assert document["additional_data"] == {
        "version": "1.0",
        "code": "insufficient_balance",
        "required": 100,
        "available": 99,
        "affordable_recipients": 1,
    }


def test_verify_changes_nothing(service: Service) -> None:
    caller = service.organization(100)
    before = service.points_json("audit")
    for _ in range(3):
        service.verify(caller.live, {"recipient": "a@example.com", "amount": 50})
    after = service.points_json("audit")
    assert (after["batches"], after["transactions"]) == (before["batches"], before["transactions"])
    assert service.balance(caller.live) == 100


def test_verify_of_a_disabled_or_suspended_organization_is_a_refusal_with_200_and_disabled_wins(
    service: Service,
) -> None:
    caller = service.organization(100)
    body = {"recipient": "a@example.com", "amount": 50}
    service.points("organizations", "suspend", str(caller.id))
    assert service.verify(caller.live, body).json()["additional_data"]["code"] == "organization_suspended"
    service.points("organizations", "disable", str(caller.id))
    refusal = service.verify(caller.live, body)
    assert refusal.status_code == 200
    assert refusal.json()["data"]["validated"] is False
    assert refusal.json()["additional_data"]["code"] == "organization_disabled"
    service.points("organizations", "enable", str(caller.id))
    service.points("organizations", "resume", str(caller.id))
    assert service.verify(caller.live, body).json()["data"]["validated"] is True


def test_verify_with_a_development_key_looks_at_the_sandbox_balance(service: Service) -> None:
    caller = service.organization(0, sandbox_balance=10)
    document = service.verify(caller.development, {"recipient": "a@example.com", "amount": 10}).json()
    assert document["additional_data"]["available"] == 10
    assert document["data"]["validated"] is True


def test_verify_and_send_report_the_same_faults(service: Service) -> None:
    caller = service.organization(100)
    body = {"recipients": ["a@example.com", "nonsense", "A@example.com"], "amount": "5"}
    verified, sent = service.verify(caller.live, body), service.send(caller.live, body)
    assert verified.status_code == sent.status_code == 400
    assert verified.json() == sent.json()
    assert set(verified.json()["errors"]) == {"recipients.1", "recipients.2", "amount"}
