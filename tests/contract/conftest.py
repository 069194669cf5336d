"""The services that the contract is held against. Nothing here knows what is inside of them."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.contract import postgresql
from tests.contract.calls import Organization, organizations
from tests.contract.service import Service

_BALANCE = 10**12

# Webhooks may lead to receivers of the tests.
_LOOPBACK = {"POINTS_WEBHOOK_ALLOW": "127.0.0.0/8"}

_NARROW = {
    **_LOOPBACK,
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


@contextlib.contextmanager
def _database() -> Iterator[dict[str, str]]:
    """Give the settings of a service's PostgreSQL: none for the embedded one, which `points up` runs itself."""
    if postgresql.PROGRAMS is None:
        yield {}
        return
    with postgresql.running(postgresql.PROGRAMS) as url:
        yield {"DATABASE_URL": url}


# For the package, not the session: a service that nobody asks any more still takes a gigabyte.
@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a service with the default settings, but for the rate limit: some tests make many calls with one key."""
    folder = tmp_path_factory.mktemp("contract")
    with (
        _database() as database,
        Service(folder, POINTS_RATE_LIMIT="off", **_LOOPBACK, **database).running() as running,
    ):
        yield running


@pytest.fixture(scope="package")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a service with settings of its own, that tests may also take to pieces."""
    folder = tmp_path_factory.mktemp("narrow")
    with _database() as database, Service(folder, **_NARROW, **database).running() as running:
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
