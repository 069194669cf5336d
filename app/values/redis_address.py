"""The address of Redis: a single server, or a master that Sentinels watch and replace when it fails."""

from dataclasses import dataclass
from urllib.parse import parse_qs, quote, unquote, urlsplit

_SENTINEL_PORT = 26_379


@dataclass(frozen=True, kw_only=True)
class Sentinels:
    """The parts of `sentinel://[user]:[password]@host:port,host:port/[db]?master=NAME[&sentinel_password=…]`.

    `password` is for Redis, `sentinel_password` for the Sentinels (None: no password).
    """

    hosts: tuple[tuple[str, int], ...]
    master: str
    db: int
    username: str | None
    password: str | None
    sentinel_password: str | None

    @classmethod
    def of(cls, url: str) -> "Sentinels":
        """Read an address.

        Raises:
            ValueError: it cannot be read; the sentence does not repeat it, because it may hold a password.
        """
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        if "master" not in query:
            raise ValueError("it must name the master that the Sentinels watch over, as in ?master=points")
        try:
            return cls(
                hosts=tuple(_host_and_port(text) for text in parts.netloc.rpartition("@")[2].split(",")),
                master=query["master"][0],
                db=int(parts.path.strip("/") or "0"),
                username=unquote(parts.username) if parts.username else None,
                password=unquote(parts.password) if parts.password else None,
                sentinel_password=query.get("sentinel_password", [None])[0],
            )
        except ValueError:
            raise ValueError("its hosts, ports or database number cannot be read") from None

    def login(self) -> dict[str, str]:
        """Return the arguments with which a client logs in to a Sentinel."""
        return {} if self.sentinel_password is None else {"password": self.sentinel_password}

    def urls(self) -> list[str]:
        """Return an address for each Sentinel, in Celery's form."""
        login = f"{quote(self.username or '', safe='')}:{quote(self.password, safe='')}@" if self.password else ""
        return [f"sentinel://{login}{host}:{port}/{self.db}" for host, port in self.hosts]


def names_sentinels(url: str) -> bool:
    """Tell whether an address names Sentinels."""
    return urlsplit(url).scheme == "sentinel"


def require_known_options(url: str) -> None:
    """Check the query of an address of a single server.

    Raises:
        ValueError: the Redis client does not know an option or does not accept its value.
    """
    if not urlsplit(url).query:
        return
    # Imported late: the settings import this module for every command, and most commands do not use Redis.
    from redis import ConnectionPool  # noqa: PLC0415

    try:
        ConnectionPool.from_url(url).make_connection()  # This does not connect yet.
    except (TypeError, ValueError):
        raise ValueError("one of its options is unknown to the Redis client, or has an invalid value") from None


def _host_and_port(text: str) -> tuple[str, int]:
    name, _, port = text.partition(":")
    if not name:
        raise ValueError(text)
    return name, int(port or _SENTINEL_PORT)
