"""The callers that the contract is held for, and a second service with narrow settings. Nothing here looks inside."""

from collections.abc import Iterator

import pytest

from tests.contract.calls import Organization, organizations
from tests.contract.postgresql import older_postgresql
from tests.service.up import Service

_BALANCE = 10**12

_NARROW = {
    "POINTS_WAIT_S": "2",
    "POINTS_KEEP_ALIVE_S": "3",
    "POINTS_RATE_LIMIT": "300/minute",
    "POINTS_RECIPIENTS_MAX": "2000",
    "POINTS_AMOUNT_MAX": str(2**62),
    "POINTS_ALLOW_REPEATS": "true",
    "POINTS_BODY_BYTES_MAX": "200000",
    "POINTS_SANDBOX_BALANCE": "77",
}


@pytest.fixture(autouse=True)
def environment() -> None:
    """Leave the environment as it is, in the place of the fixture of all other tests: each service has its own."""


# For the package, not the session: a service that nobody asks any more still takes a gigabyte.
@pytest.fixture(scope="package")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a service with settings of its own, that tests may also take to pieces."""
    folder = tmp_path_factory.mktemp("narrow") / "data"
    with older_postgresql() as database, Service(folder, **_NARROW, **database).running() as running:
        yield running


@pytest.fixture(scope="package")
def _rich(service: Service) -> list[Organization]:
    """Make organizations that can pay for everything; tests share them and look at how their balances change."""
    return organizations(service, _BALANCE, _BALANCE)


@pytest.fixture(scope="package")
def acme(_rich: list[Organization]) -> Organization:
    return _rich[0]


@pytest.fixture(scope="package")
def globex(_rich: list[Organization]) -> Organization:
    return _rich[1]
