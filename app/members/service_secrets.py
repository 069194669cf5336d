"""Random secrets that all processes of the service share. The first process that needs one stores it in PostgreSQL."""

import secrets

from sqlalchemy import Connection, text


def find_or_make(connection: Connection, name: str) -> bytes:
    """Return the 32 bytes of this name. All processes get the same bytes, also if they ask at the same time."""
    parameters = {"name": name, "secret": secrets.token_bytes(32)}
    connection.execute(_MAKE, parameters)
    secret: bytes = connection.execute(_FIND, parameters).scalar_one()
    return secret


_MAKE = text("INSERT INTO service_secrets (name, secret) VALUES (:name, :secret) ON CONFLICT (name) DO NOTHING")
_FIND = text("SELECT secret FROM service_secrets WHERE name = :name")
