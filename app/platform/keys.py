"""Platform keys in the database: made by an operator, found by their hash, revoked at once, bound to scopes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.errors import InsufficientScope, InvalidKey, NotFound
from app.events.event_types import PLATFORM_TYPES
from app.postgres.database import row_to
from app.scope import Author
from app.values.ids import require_id
from app.values.key_hashes import new_platform_key
from app.values.texts import checked_key_name

USERS_READ, USERS_REGISTER = "users:read", "users:register"
USERS_CHANGE, USERS_ERASE = "users:change", "users:erase"
ORGANIZATIONS_READ, ORGANIZATIONS_WRITE = "organizations:read", "organizations:write"
REFILLS_WRITE, KEYS_WRITE = "refills:write", "keys:write"
MEMBERS_READ, MEMBERS_WRITE = "members:read", "members:write"
SCOPES = (
    *(USERS_READ, USERS_REGISTER, USERS_CHANGE, USERS_ERASE),
    *(ORGANIZATIONS_READ, ORGANIZATIONS_WRITE, REFILLS_WRITE, KEYS_WRITE, MEMBERS_READ, MEMBERS_WRITE),
)


def scopes_of_events(types: Sequence[str] | None) -> tuple[str, ...]:
    """Return the scopes that it takes to read events of these types; None: of all."""
    nouns = {kind.partition(".")[0] for kind in (PLATFORM_TYPES if types is None else types)}
    return (USERS_READ,) * ("user" in nouns) + (ORGANIZATIONS_READ,) * bool(nouns - {"user"})


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformCaller:
    """Who makes a call of the platform: a key, and what it may do."""

    platform_key_id: int
    scopes: Sequence[str]

    def require(self, *scopes: str) -> None:
        """Refuse the call if the key lacks one of these scopes.

        Raises:
            InsufficientScope: it does; the sentence names it.
        """
        for scope in scopes:
            if scope not in self.scopes:
                raise InsufficientScope(scope)

    @property
    def author(self) -> Author:
        """The program as the author of what it does."""
        return Author(platform_key_id=self.platform_key_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPlatformKey:
    """A platform key as a list shows it, with its first characters only."""

    id: int
    name: str
    scopes: Sequence[str]
    start: str
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


def create(connection: Connection, name: str, scopes: Sequence[str] = ()) -> tuple[StoredPlatformKey, str]:
    """Make a platform key with these scopes, or with all; return it and its text, which is not stored.

    Raises:
        Refused: the name is not acceptable.
    """
    key = new_platform_key()
    # In their own order, each once.
    meant = [scope for scope in SCOPES if scope in scopes or not scopes]
    values = {"name": checked_key_name(name), "scopes": meant, "hash": key.hash, "start": key.start}
    made = row_to(StoredPlatformKey, connection.execute(_CREATE, values).one())
    actions.record(connection, actions.PLATFORM_KEY_MADE, subject_id=made.id)
    return made, key.text


_SHOWN = "id, name, scopes, start, created_at, last_used_at, revoked_at"
_CREATE = text(f"""
    INSERT INTO platform_keys (name, scopes, hash, start) VALUES (:name, :scopes, :hash, :start) RETURNING {_SHOWN}
""")


def get_caller(connection: Connection, key_hash: bytes) -> PlatformCaller:
    """Return the caller that a platform key belongs to.

    Raises:
        InvalidKey: unknown or revoked.
    """
    row = connection.execute(_CALLER, {"hash": key_hash}).one_or_none()
    if row is None:
        raise InvalidKey
    if row.last_use_is_old:
        connection.execute(_NOTE_USE, {"id": row.id})
    return PlatformCaller(platform_key_id=row.id, scopes=row.scopes)


_CALLER = text("""
    SELECT id, scopes, last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute' AS last_use_is_old
    FROM platform_keys WHERE hash = :hash AND revoked_at IS NULL
""")
# SKIP LOCKED: of several calls at once, one notes the use and the others do not wait.
_NOTE_USE = text("""
    UPDATE platform_keys SET last_used_at = clock_timestamp()
    WHERE id = (SELECT id FROM platform_keys WHERE id = :id FOR NO KEY UPDATE SKIP LOCKED)
""")


def find_all(connection: Connection) -> list[StoredPlatformKey]:
    """Return every platform key, revoked ones included, oldest first."""
    return [row_to(StoredPlatformKey, row) for row in connection.execute(_FIND_ALL)]


_FIND_ALL = text(f"SELECT {_SHOWN} FROM platform_keys ORDER BY id")


def revoke(connection: Connection, platform_key_id: int) -> tuple[datetime, bool]:
    """Revoke a platform key at once; again changes nothing. Return when it was revoked, and whether it was just now.

    Raises:
        NotFound: there is no such platform key.
    """
    require_id("platform key", platform_key_id)
    revoked: datetime | None = connection.execute(_REVOKE, {"id": platform_key_id}).scalar_one_or_none()
    if revoked is not None:
        actions.record(connection, actions.PLATFORM_KEY_REVOKED, subject_id=platform_key_id)
        return revoked, True
    earlier: datetime | None = connection.execute(_REVOKED_AT, {"id": platform_key_id}).scalar_one_or_none()
    if earlier is None:
        raise NotFound("platform key", platform_key_id)
    return earlier, False


_REVOKE = text("""
    UPDATE platform_keys SET revoked_at = clock_timestamp() WHERE id = :id AND revoked_at IS NULL RETURNING revoked_at
""")
_REVOKED_AT = text("SELECT revoked_at FROM platform_keys WHERE id = :id")
