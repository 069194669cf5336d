"""The settings, read once from the environment and checked at the start."""

import binascii
import os
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from difflib import get_close_matches
from email.utils import formataddr, parseaddr
from functools import lru_cache
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.errors import InvalidAddress, SettingsError
from app.values.ip_addresses import IPNetwork, networks
from app.values.redis_address import Sentinels, names_sentinels, require_known_options

INT64_MAX = 2**63 - 1

_S = TypeVar("_S", bound=BaseSettings)

_SECRETS_KEY_BYTES = 32
_BROKER_SCHEMES = ("redis", "rediss", "sentinel", "amqp", "amqps")


def _postgresql(url: str) -> str:
    """Accept the schemes of hosting providers and SQLAlchemy, and return the usual URL."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("postgres", "postgresql", "postgresql+psycopg"):
        raise ValueError("it must start with postgresql://")
    _require_host_and_port(url)
    _require_options_of_postgresql(f"postgresql://{rest}")
    return f"postgresql://{rest}"


def _redis(url: str) -> str:
    if _scheme_of(url) not in ("redis", "rediss", "sentinel"):
        raise ValueError("it must start with redis://, rediss:// or sentinel://")
    if names_sentinels(url):
        Sentinels.of(url)
    else:
        _require_host_and_port(url)
        _require_number_of_database(url)
        require_known_options(url)
    return url


def _scheme_of(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:  # Its message repeats the password.
        raise ValueError("its host or its port cannot be read") from None


def _require_number_of_database(url: str) -> None:
    """Raise unless the Redis database is a number: libraries differ in how they read anything else."""
    if not re.fullmatch(r"(/[0-9]*)?", urlsplit(url).path):
        raise ValueError("its path must be the number of a database, as in redis://host:6379/0")


def _broker(url: str) -> str:
    if _scheme_of(url) not in _BROKER_SCHEMES:
        raise ValueError(f"it must start with one of {', '.join(_BROKER_SCHEMES)}")
    if _scheme_of(url) not in ("amqp", "amqps"):
        return _redis(url)
    _require_host_and_port(url)
    return url


def _require_host_and_port(url: str) -> None:
    """Raise if the port cannot be read. The sentence must not repeat the address, which may hold a password."""
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ValueError("its host or its port cannot be read") from None


def _require_options_of_postgresql(url: str) -> None:
    """Raise for options that libpq does not know, such as the ?schema= or ?pgbouncer= of other libraries."""
    from psycopg import ProgrammingError, conninfo  # noqa: PLC0415  # Slow, and not needed for `--help`.

    try:
        port = str(conninfo.conninfo_to_dict(url).get("port", ""))
    except ProgrammingError:
        raise ValueError("one of its options is unknown to PostgreSQL, or malformed") from None
    if not re.fullmatch(r"[0-9,]*", port):
        raise ValueError("its port cannot be read")


def checked_public_url(url: str) -> str:
    """Accept a scheme, a host and a port: the console is at `/console` there."""
    if not re.fullmatch(r"https?://(?!-)([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?", url):
        raise ValueError("it must be an address without a path, such as https://points.example.com")
    return url.rstrip("/")


# In place of an SMTP server: mail is printed to the log.
MAIL_TO_LOG = "log:"


def _smtp(url: str, others: ValidationInfo) -> str:
    """Accept the address of an SMTP server. The sentence must not repeat it: it may hold a password."""
    if url == MAIL_TO_LOG:
        return url
    if _scheme_of(url) not in ("smtp", "smtps"):
        raise ValueError("it must start with smtp:// or smtps://")
    _require_host_and_port(url)
    parts = urlsplit(url)
    if not parts.hostname or parts.path not in ("", "/") or parts.fragment:
        raise ValueError("it must be a scheme, a host and a port, as in smtp://mail.example.com:587?starttls")
    if parts.query not in ("", "starttls") or (parts.query and parts.scheme == "smtps"):
        raise ValueError("its only option is ?starttls, after smtp://")
    if parts.password and parts.scheme == "smtp" and not parts.query and not _is_loopback(parts.hostname):
        raise ValueError("it holds a password, so it must start with smtps:// or end with ?starttls")
    if others.data.get("mail_from", "") is None:
        raise ValueError("POINTS_MAIL_FROM must be set too, to the address that mail comes from")
    return url


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "127.0.0.1", "::1")


def _mail_from(address: str) -> str:
    from app.values.addresses import parse  # noqa: PLC0415  # Slow, and not needed for `--help`.

    name, only_address = parseaddr(address)
    try:
        return formataddr((name, parse(only_address).text))
    except (InvalidAddress, UnicodeError):
        raise ValueError("it must be an e-mail address, or a name and one: Points <points@example.com>") from None


def _rate(rate: str) -> str:
    if not re.fullmatch(r"off|[1-9][0-9]* ?(/|per) ?(second|minute|hour|day)", rate):
        raise ValueError("it must be off, or a number of calls per second, minute, hour or day, such as 50/second")
    return rate


def _networks(text: object) -> object:
    try:
        return networks(text) if isinstance(text, str) else text
    except ValueError:
        raise ValueError("it must be networks with commas between them, such as 10.0.0.0/8,fd00::/8") from None


def _secrets_keys(text: object) -> object:
    """Read Fernet keys, the newest first. The sentence must not repeat them."""
    if not isinstance(text, str):
        return text
    keys = tuple(key.strip() for key in text.split(",") if key.strip())
    try:
        if all(len(urlsafe_b64decode(key)) == _SECRETS_KEY_BYTES for key in keys):
            return keys
    except (binascii.Error, ValueError):
        pass
    raise ValueError("each key must be 32 random bytes in base64, as `openssl rand -base64 32 | tr +/ -_` makes one")


class TableSettings(BaseSettings):
    """What a migration needs to know: it may run where nothing else is set."""

    model_config = SettingsConfigDict(env_prefix="POINTS_", frozen=True, extra="ignore")

    # How many batch ids a partition of the transactions spans.
    partition_batch_ids: int = Field(default=16_777_216, ge=64, le=2**40)


class Settings(TableSettings):
    """Every setting of the web and worker processes, with the defaults of the contract.

    Units come last in a name: `_s` seconds, `_bytes_max` bytes, `_balance` points.
    """

    database_url: Annotated[str, AfterValidator(_postgresql)] = Field(validation_alias="DATABASE_URL")
    # A standby that follows it, for the long reads (app/postgres/standby.py).
    database_read_url: Annotated[str, AfterValidator(_postgresql)] | None = Field(
        default=None, validation_alias="DATABASE_READ_URL"
    )
    redis_url: Annotated[str, AfterValidator(_redis)] = Field(validation_alias="REDIS_URL")
    # The broker of the messages; default: the Redis above.
    broker_url: Annotated[str, AfterValidator(_broker)] | None = None

    recipients_max: int = Field(default=10_000, ge=1, le=100_000)
    amount_max: int = Field(default=1_000_000_000, ge=1, le=INT64_MAX)
    allow_repeats: bool = False
    body_bytes_max: int = Field(default=8_388_608, ge=1_024, le=1_073_741_824)
    wait_s: float = Field(default=25.0, ge=0, le=600)
    keep_alive_s: int = Field(default=75, ge=1, le=3_600)
    rate_limit: Annotated[str, AfterValidator(_rate)] = "50/second"
    sandbox_balance: int = Field(default=1_000_000, ge=0, le=INT64_MAX)

    # Where people reach the console: links to it begin so.
    public_url: Annotated[str, AfterValidator(checked_public_url)] | None = None

    # Whom mail to members comes from, and the SMTP server that takes it; none: there is no mail.
    mail_from: Annotated[str, AfterValidator(_mail_from)] | None = None
    smtp_url: Annotated[str, AfterValidator(_smtp)] | None = Field(default=None, repr=False)

    # Networks that webhooks may call although they are not public, also without TLS.
    webhook_allow: Annotated[tuple[IPNetwork, ...], NoDecode, BeforeValidator(_networks)] = ()
    # The keys that encrypt the secrets of webhooks, the newest first, separated by commas.
    secrets_key: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_secrets_keys)] = Field(default=(), repr=False)

    database_connections_max: int = Field(default=10, ge=1, le=1_000)
    # Whether DATABASE_URL is the address of a pooler that may give each transaction another server connection.
    database_pooler: bool = False
    worker_events: bool = True
    events_days: int = Field(default=90, ge=1, le=3_650)
    audit_every_s: int = Field(default=3_600, ge=0, le=604_800)
    access_log: bool = True
    request_log: bool = True
    log_format: Literal["auto", "json", "text"] = "auto"

    @property
    def has_mail(self) -> bool:
        """Whether members are told of anything by mail, sent or printed."""
        return self.smtp_url is not None

    @property
    def sends_mail(self) -> bool:
        return self.smtp_url not in (None, MAIL_TO_LOG)


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the settings of this process, read from the environment at the first call.

    Raises:
        SettingsError: a setting is missing or wrong.
    """
    return _read(Settings)


def size_of_partitions() -> int:
    """Return how many batch ids a partition spans, also where no other setting is made.

    Raises:
        SettingsError: it is wrong.
    """
    return _read(TableSettings).partition_batch_ids


def _read(kind: type[_S]) -> _S:
    try:
        return kind()  # Its fields come from the environment.
    except ValidationError as error:
        raise SettingsError("\n".join(map(_sentence, error.errors()))) from None


def misspelt_settings() -> Iterator[tuple[str, str]]:
    """Yield each environment variable that looks like a misspelt setting, with that setting.

    Other variables with this prefix are not reported: Kubernetes sets some for a service named points.
    """
    prefix = "POINTS_"
    meant = {name.upper(): f"{prefix}{name.upper()}" for name in (*Settings.model_fields, "data_dir", "key")}
    meant |= {name: name for name in ("DATABASE_URL", "DATABASE_READ_URL", "REDIS_URL")}
    for name in sorted(os.environ):
        if name.upper().startswith(prefix) and name.upper() not in meant.values():
            for near in get_close_matches(name.upper().removeprefix(prefix), meant, n=1, cutoff=0.7):
                yield name, meant[near]


# What a setting must be, by pydantic's type of error.
_MUST_BE = {
    "int_parsing": "an integer",
    "int_parsing_size": "a smaller integer",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
}


def _sentence(fault: ErrorDetails) -> str:
    name, given = str(fault["loc"][0]), fault.get("input")
    must_be = _MUST_BE.get(fault["type"])
    if must_be is None:
        message = fault["msg"].removeprefix("Value error, ")
    else:
        # The bounds of floats are whole numbers: say 600, not 600.0.
        bounds = {key: int(value) if isinstance(value, float) else value for key, value in fault.get("ctx", {}).items()}
        message = f"it must be {must_be.format(**bounds)}"
    if name in ("broker_url", "secrets_key", "smtp_url"):  # It may hold a password, or is a secret.
        return f"The setting POINTS_{name.upper()} is wrong: {message}."
    if name not in ("DATABASE_URL", "DATABASE_READ_URL", "REDIS_URL"):
        return f"The setting POINTS_{name.upper()} is wrong: {message}, but it is {str(given)!r}."
    if isinstance(given, str):
        return f"The setting {name} is wrong: {message}."
    return f"The setting {name} is missing. Set it, or start the service with `points up`."


def without_password(url: str) -> str:
    """Return `url` with three stars in place of any password."""
    parts = urlsplit(url)
    if parts.password is not None:
        where = parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{parts.username or ''}:***@{where}")
    # PostgreSQL and Redis also accept the password as a query parameter.
    return urlunsplit(parts._replace(query=re.sub(r"(?<=password=)[^&]*", "***", parts.query)))
