"""Keys: who is let in, and the one answer to everybody else."""

import pytest

from tests.contract.calls import Organization, address, nothing_changes, refusal, success
from tests.contract.service import Service

_READ = ("/v1/organization", "/v1/batches", "/v1/transactions", "/v1/batches/1")
_POSTED = ("/v1/points/verify", "/v1/points/send", "/v1/sandbox/reset")


@pytest.fixture(scope="module")
def revoked(service: Service, globex: Organization) -> str:
    """Return a key that was good before it was revoked, while the other keys of its organization stay good."""
    made = service.json("keys", "create", str(globex.id))
    assert success(service.call("GET", "/v1/organization", key=made["key"]))["id"] == globex.id
    service.command("keys", "revoke", str(made["id"]))
    refusal(service.call("GET", "/v1/organization", key=made["key"]), 401, "authorization")
    success(globex.live.get("/v1/organization"))
    return str(made["key"])


@pytest.mark.parametrize("path", [*_READ, *_POSTED])
def test_a_missing_malformed_unknown_or_revoked_key_is_401_in_the_same_words(
    service: Service, acme: Organization, revoked: str, path: str
) -> None:
    good, words = acme.live.text, set()
    unknown = good[:-5] + ("aaaaa" if good[-5:] != "aaaaa" else "bbbbb")
    given = ["", "Bearer", f"Basic {good}", good, f"Bearer {good} {good}", f"Bearer {good}0", "Bearer nonsense"]
    given += [f"Bearer {unknown}", f"Bearer {good.swapcase()}", f"Bearer {revoked}"]
    body = {"json": {"recipient": address(), "amount": 1}} if path in _POSTED else {}
    with nothing_changes(acme.live):
        for headers in [{}, *({"Authorization": one} for one in given)]:
            answer = service.request("POST" if body else "GET", path, headers=headers, **body)
            words.add(refusal(answer, 401, "authorization")["authorization"][0])
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert len(words) == 1


def test_a_bad_key_is_answered_before_the_body_is_judged(service: Service) -> None:
    headers = {"Content-Type": "text/plain"}
    refusal(service.call("POST", "/v1/points/send", content=b"nonsense", headers=headers), 401, "authorization")


def test_a_key_tells_its_mode_and_opens_its_own_organization_alone(acme: Organization, globex: Organization) -> None:
    for organization in (acme, globex):
        assert organization.live.text.startswith("pts_live_")
        assert organization.development.text.startswith("pts_dev_")
        for key in (organization.live, organization.development):
            assert success(key.get("/v1/organization"))["id"] == organization.id
    lower = {"Authorization": f"bearer {acme.live.text}"}
    assert success(acme.service.call("GET", "/v1/organization", headers=lower))["id"] == acme.id
