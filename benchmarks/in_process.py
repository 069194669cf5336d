"""Calling the application's functions in this process, against the servers of a running service."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from app.postgres.connections import discard_inherited_connections, engine
from app.settings import settings
from benchmarks.service import Service


@contextlib.contextmanager
def in_this_process(service: Service, settings_too: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Point the application's functions in this process to the servers of a service, with its settings."""
    addresses = {"DATABASE_URL": service.database_url, "REDIS_URL": service.redis_url, **settings_too}
    former = {name: os.environ.get(name) for name in addresses}
    os.environ.update(addresses)
    settings.cache_clear()
    try:
        with _no_log():
            yield
    finally:
        engine().dispose()
        discard_inherited_connections()
        settings.cache_clear()
        for name, address in former.items():
            os.environ.pop(name)
            if address is not None:
                os.environ[name] = address


@contextlib.contextmanager
def _no_log() -> Iterator[None]:
    """Discard the log lines of the functions: writing them costs the same, but they stay out of the tables."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
