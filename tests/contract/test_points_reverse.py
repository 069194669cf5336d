"""`points reverse`: what a person sees, and that nothing is taken without an answer."""

from tests.contract.calls import Organization, address, addresses
from tests.contract.reversing import send
from tests.service.up import Service


def test_it_shows_what_would_come_back_asks_and_takes_it_once(service: Service, acme: Organization) -> None:
    batch_id, _ = send(acme.live, {"recipients": addresses(3), "amount": 20})
    before = acme.live.balance
    given = ("--reason", "the wrong list", "--key", acme.live.text, "--url", service.url)
    for answer in ("n\n", ""):
        refused = service.run("reverse", str(batch_id), *given, stdin=answer)
        assert refused.returncode == 1
        assert "60 points" in refused.stdout
        assert "Nothing was taken back" in refused.stderr
    assert acme.live.balance == before
    done = service.run("reverse", str(batch_id), *given, stdin="y\n")
    assert done.returncode == 0, done.stderr
    assert "60 points of 3 transactions" in done.stdout
    assert acme.live.balance == before + 60
    again = service.run("reverse", str(batch_id), *given, "--yes")
    assert (again.returncode, "Nothing is left" in again.stderr) == (1, True)
    assert acme.live.balance == before + 60


def test_it_finds_the_running_service_and_answers_programs(service: Service, acme: Organization) -> None:
    batch_id, _ = send(acme.live, {"recipient": address(), "amount": 7})
    given = ("--reason", "twice", "--key", acme.live.text, "--yes")
    result = service.json("reverse", str(batch_id), *given)
    assert (result["amount"], [one["reversed"] for one in result["transactions"]]) == (7, [7])
    for absent in ("999999999", str(2**63)):
        told = service.command("reverse", absent, *given, status=1).stderr
        assert f"There is no batch {absent}." in told
    told = service.command("reverse", str(batch_id), "--reason", "x" * 256, *given[2:], status=1).stderr
    assert "at most 255 characters" in told
