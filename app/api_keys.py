"""API keys in the database: made for an organization and a mode, looked up by their hash, revoked at once."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from app.actions import log as actions
from app.errors import InvalidKey, NotFound
from app.events import event_types, log
from app.noun import Noun
from app.noun_fields import Id, Points, Shown, says, says_one_of
from app.organizations import OrganizationInMode
from app.postgres.database import author_of
from app.scope import KINDS, MEMBER, OPERATOR, PLATFORM_KEY, Scope
from app.values.ids import require_id
from app.values.key_bounds import READ, UNBOUNDED, Bounds
from app.values.key_hashes import hash_key, new_key
from app.values.texts import checked_key_name


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who makes a request: a key or a member of the console, the mode, and the organization in that mode."""

    api_key_id: int | None
    sandbox: bool
    organization: OrganizationInMode
    member_id: int | None = None
    bounds: Bounds = UNBOUNDED
    approval_above: int | None = None  # The points above which its sends await an approval; None: none does.

    @property
    def scope(self) -> Scope:
        return Scope(self.organization.id, self.sandbox)

    @property
    def sent_by(self) -> int | None:
        """Whose sends and reversals it sees and changes: without the scope `read` its own alone; None: everybody's."""
        return None if self.bounds.allow((READ,)) else self.api_key_id


_Id = Annotated[Id, says("The id of the key.", 4)]
_Organization = Annotated[Id, says("The organization that it belongs to.", 1)]
_Sandbox = Annotated[bool, says("True: a development key, for the sandbox.", True)]
_Name = Annotated[str | None, says("What people call it; null if it has no name.", "Till")]
_Scopes = Annotated[list[str] | None, says("What it may do; null: everything.", None)]
_End = Annotated[datetime | None, says("From when it opens nothing; null: it has no end.", None)]
_BatchLimit = Annotated[Points | None, says("The most points of one batch; null: no limit.", None)]
_DailyLimit = Annotated[Points | None, says("The most points of one day in UTC; null: no limit.", None)]


class KeyMaker(BaseModel):
    """Who has made a key."""

    type: str = says_one_of(KINDS, "What kind of author it is.", MEMBER)
    id: Id | None = says("The id of the member or the platform key; null for an operator.", 3)
    name: str = says("The name of the member or the platform key; for an operator that of the system user.", "Ada")


class CreatedKey(NamedTuple):
    """A key, which is shown once."""

    id: _Id
    key: Annotated[str, says("The key. It is shown once: store it now.", "pts_dev_…")]
    organization_id: _Organization
    name: _Name
    sandbox: _Sandbox
    scopes: _Scopes
    expires_at: _End
    batch_limit: _BatchLimit
    daily_limit: _DailyLimit


class StoredKey(NamedTuple):
    """A key of an organization."""

    id: _Id
    organization_id: _Organization
    sandbox: _Sandbox
    name: _Name
    start: Annotated[str, says("Its first characters.", "pts_dev_S3nT")]
    scopes: _Scopes
    expires_at: _End
    batch_limit: _BatchLimit
    daily_limit: _DailyLimit
    created_at: Annotated[
        datetime, says("When it was made. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    ]
    made_by: Annotated[
        Mapping[str, Any] | None,
        says("Who made it; null: nobody whom we know.", None),
        Shown(described=KeyMaker | None),
    ]
    last_used_at: Annotated[datetime | None, says("When it was last used, to the minute; null: never.", None)]
    revoked_at: Annotated[datetime | None, says("When it was revoked; null: it is good.", None)]

    @property
    def bounds(self) -> Bounds:
        """What bounds it."""
        return Bounds(self.scopes, self.expires_at, self.batch_limit, self.daily_limit)

    @property
    def is_good(self) -> bool:
        """Tell whether it is neither revoked nor expired."""
        return self.revoked_at is None and not self.has_expired

    @property
    def has_expired(self) -> bool:
        """Tell whether its end has come, by our clock."""
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)


def _made_by(key: str) -> str:
    """Return the SQL for a key's `made_by`; `key` is the prefix of its columns."""
    return f"""
        CASE WHEN {key}made_by_member_id IS NOT NULL
             THEN (SELECT json_build_object('type', '{MEMBER}', 'id', m.id,
                                            'name', trim(m.first_name || ' ' || m.last_name))
                   FROM members m WHERE m.id = {key}made_by_member_id)
             WHEN {key}made_by_platform_key_id IS NOT NULL
             THEN (SELECT json_build_object('type', '{PLATFORM_KEY}', 'id', p.id, 'name', p.name)
                   FROM platform_keys p WHERE p.id = {key}made_by_platform_key_id)
             WHEN {key}made_by_operator IS NOT NULL
             THEN json_build_object('type', '{OPERATOR}', 'id', NULL, 'name', {key}made_by_operator) END
    """


keys = Noun(StoredKey, "key", "keys", table="api_keys", schema="Key", computed={"made_by": _made_by})
new_keys = Noun(CreatedKey, "key", "keys")


def create(
    connection: Connection, organization_id: int, *, sandbox: bool, name: str | None = None, bounds: Bounds = UNBOUNDED
) -> tuple[int, str]:
    """Make a key and return its id and its text. The text is not stored, so it cannot be read again.

    Its maker is the one for whom the transaction was opened.

    What bounds the key is set now, and never changed.

    Raises:
        NotFound: there is no such organization.
        Refused: the name is not acceptable.
    """
    require_id("organization", organization_id)
    key = new_key(sandbox=sandbox)
    values = {
        "organization_id": organization_id,
        "sandbox": sandbox,
        "name": None if name is None else checked_key_name(name),
        "hash": key.hash,
        "start": key.start,
        **bounds._asdict(),
        **author_of(connection)._asdict(),
    }
    try:
        with connection.begin_nested():
            api_key_id: int = connection.execute(_CREATE, values).scalar_one()
    except IntegrityError:
        raise NotFound("organization", organization_id) from None
    payload = {"id": api_key_id, "name": values["name"], "sandbox": sandbox, **bounds.payload()}
    log.write(connection, event_types.KEY_CREATED, organization_id, data={"key": payload})
    actions.record(
        connection,
        actions.KEY_MADE,
        organization_id=organization_id,
        subject_id=api_key_id,
        sandbox=sandbox,
        detail=bounds.in_words() or None,
    )
    return api_key_id, key.text


_CREATE = text("""
    INSERT INTO api_keys (organization_id, sandbox, name, hash, start, scopes, expires_at, batch_limit, daily_limit,
                          made_by_member_id, made_by_platform_key_id, made_by_operator)
    VALUES (:organization_id, :sandbox, :name, :hash, :start, :scopes, :expires_at, :batch_limit, :daily_limit,
            :member_id, :platform_key_id, :operator)
    RETURNING id
""")


def get_caller(connection: Connection, key_hash: bytes) -> Caller:
    """Return the caller that a key belongs to. The look-up by hash rules out timing attacks.

    Raises:
        InvalidKey: unknown, expired or revoked, with the same sentence as for a malformed key.
    """
    row = connection.execute(_CALLER, {"hash": key_hash}).one_or_none()
    if row is None:
        raise InvalidKey
    api_key_id, sandbox, scopes, expires_at, batch_limit, daily_limit, last_use_is_old, above, *organization = row
    if last_use_is_old:
        note_use(connection, api_key_id)
    return Caller(
        api_key_id=api_key_id,
        sandbox=sandbox,
        organization=OrganizationInMode._make(organization),
        bounds=Bounds(scopes, expires_at, batch_limit, daily_limit),
        approval_above=above,
    )


def was_made(connection: Connection, key: str) -> bool:
    """Tell whether a key was made in this database; it may be revoked since."""
    return bool(connection.execute(_WAS_MADE, {"hash": hash_key(key)}).scalar())


_WAS_MADE = text("SELECT EXISTS (SELECT FROM api_keys WHERE hash = :hash)")


def note_use(connection: Connection, api_key_id: int) -> None:
    """Note that a key was used now. Callers do so once a minute at most, since a write costs more than a read."""
    connection.execute(_NOTE_USE, {"id": api_key_id})


_CALLER = text("""
    SELECT k.id, k.sandbox, k.scopes, k.expires_at, k.batch_limit, k.daily_limit,
           k.last_used_at IS NULL OR k.last_used_at < clock_timestamp() - interval '1 minute',
           CASE WHEN o.approval_of = 'all' THEN o.approval_above END,
           o.id, o.name, o.is_disabled, o.is_suspended,
           CASE WHEN k.sandbox THEN o.sandbox_balance ELSE o.balance END,
           CASE WHEN k.sandbox THEN o.sandbox_last_refill ELSE o.last_refill END,
           o.created_at
    FROM api_keys k JOIN organizations o ON o.id = k.organization_id
    WHERE k.hash = :hash AND k.revoked_at IS NULL AND (k.expires_at > clock_timestamp()) IS NOT FALSE
""")

# SKIP LOCKED: of several calls at once, one notes the use and the others do not wait.
_NOTE_USE = text("""
    UPDATE api_keys SET last_used_at = clock_timestamp()
    WHERE id = (SELECT id FROM api_keys WHERE id = :id FOR NO KEY UPDATE SKIP LOCKED)
""")


def find_all(connection: Connection, organization_id: int) -> list[StoredKey]:
    """Return every key of an organization, revoked ones included, oldest first."""
    return list(map(StoredKey._make, connection.execute(_FIND_ALL, {"organization_id": organization_id})))


_FIND_ALL = text(f"SELECT {keys.columns} FROM api_keys WHERE organization_id = :organization_id ORDER BY id")


def names_of(connection: Connection, key_ids: Collection[int]) -> dict[int, str | None]:
    """Return the names of keys by their ids, also of revoked ones."""
    rows = connection.execute(_NAMES, {"ids": list(key_ids)})
    return {key_id: name for key_id, name in rows}  # noqa: C416  # The rows have no type to be a dict of.


_NAMES = text("SELECT id, name FROM api_keys WHERE id = ANY(:ids)")


def revoke(connection: Connection, api_key_id: int, *, organization_id: int | None = None) -> tuple[datetime, bool]:
    """Revoke a key at once; revoking it again changes nothing. Return when it was revoked, and whether it was just now.

    Raises:
        NotFound: there is no such key, or the given organization has no such key.
    """
    require_id("key", api_key_id)
    require_id("organization", organization_id or 0)
    parameters = {"id": api_key_id, "organization_id": organization_id}
    revoked = connection.execute(_REVOKE, parameters).one_or_none()
    if revoked is not None:
        payload = {"id": api_key_id, "sandbox": revoked.sandbox}
        log.write(connection, event_types.KEY_REVOKED, revoked.organization_id, data={"key": payload})
        actions.record(
            connection,
            actions.KEY_REVOKED,
            organization_id=revoked.organization_id,
            subject_id=api_key_id,
            sandbox=revoked.sandbox,
        )
        return revoked.revoked_at, True
    earlier: datetime | None = connection.execute(_REVOKED_AT, parameters).scalar_one_or_none()
    if earlier is None:
        raise NotFound("key", api_key_id)
    return earlier, False


_KEY = "id = :id AND organization_id = coalesce(CAST(:organization_id AS bigint), organization_id)"
_REVOKE = text(f"""
    UPDATE api_keys SET revoked_at = clock_timestamp() WHERE {_KEY} AND revoked_at IS NULL
    RETURNING revoked_at, organization_id, sandbox
""")
_REVOKED_AT = text(f"SELECT revoked_at FROM api_keys WHERE {_KEY}")
