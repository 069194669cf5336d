"""The same service with short ways inside: its database, and organizations without the second a command takes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from sqlalchemy import Connection, Engine

from app import api_keys, organizations, users
from app.ledger.claim import register
from app.ledger.refill import refill
from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.postgres.connections import new_engine
from tests.service import up


@dataclass(frozen=True, kw_only=True)
class Organization:
    """An organization with a key for each mode."""

    id: int
    live: str
    development: str


class Service(up.Service):
    """A running service: its commands as an operator gives them, its calls as a caller makes them."""

    def organization(self, balance: int = 0, *, sandbox_balance: int = 1_000_000, name: str = "Acme") -> Organization:
        """Make an organization with a live and a development key."""
        with self.connection() as connection:
            organization_id, _ = organizations.create(connection, name, sandbox_start_balance=sandbox_balance)
            for amount, sandbox in ((balance, False), (sandbox_balance, True)):
                if amount:
                    refill(connection, organization_id, amount, sandbox=sandbox)
            return Organization(
                id=organization_id,
                live=api_keys.create(connection, organization_id, sandbox=False)[1],
                development=api_keys.create(connection, organization_id, sandbox=True)[1],
            )

    def new_engine(self) -> Engine:
        """Make an engine on the service's own database, for whoever opens many transactions."""
        url = self.environment.get("DATABASE_URL") or PostgreSQL(DataDir(self.data_dir)).url()
        return new_engine(url, pool_size=1)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Open a transaction on the service's own database."""
        engine = self.new_engine()
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    def account(self, email: str) -> None:
        """Register a user, as `points users create` does."""
        with self.connection() as connection:
            register(connection, [users.new_user(email, "First", "Last")])

    def send(self, key: str, body: Mapping[str, Any], **headers: str) -> httpx.Response:
        dashed = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", "/v1/points/send", key=key, json=body, headers=dashed)

    def verify(self, key: str, body: Mapping[str, Any]) -> httpx.Response:
        return self.call("POST", "/v1/points/verify", key=key, json=body)

    def balance(self, key: str) -> int:
        return int(self.call("GET", "/v1/organization", key=key).json()["data"]["balance"])
