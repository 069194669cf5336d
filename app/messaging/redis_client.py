"""Clients for Redis by its address: one server, or a master that Sentinels watch and replace when it fails."""

from typing import Any

from redis import Redis
from redis.sentinel import Sentinel

from app.values.redis_address import Sentinels, names_sentinels


def redis_client(url: str, *, timeout_s: float, **options: Any) -> Redis:
    """Make a client that gives up after `timeout_s`. It asks Sentinels, if any, again after each disconnection."""
    timeouts = {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s}
    if not names_sentinels(url):
        return Redis.from_url(url, **timeouts, **options)
    watched = Sentinels.of(url)
    sentinel = Sentinel(watched.hosts, sentinel_kwargs={**timeouts, **watched.login()})  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(  # type: ignore[no-untyped-call]
        watched.master,
        db=watched.db,
        username=watched.username,
        password=watched.password,
        **timeouts,
        **options,
    )
    return client
