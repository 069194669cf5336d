"""The callers that the contract is held for. Nothing here looks inside."""

import pytest

from tests.contract.calls import Organization, organization
from tests.service.up import Service

_BALANCE = 10**12


@pytest.fixture(autouse=True)
def environment() -> None:
    """Leave the environment as it is, in the place of the fixture of all other tests: each service has its own."""


@pytest.fixture(scope="package")
def acme(service: Service) -> Organization:
    """Make an organization that can pay for everything; tests share it and look at how its balances change."""
    return organization(service, _BALANCE)


@pytest.fixture(scope="package")
def globex(service: Service) -> Organization:
    return organization(service, _BALANCE)
