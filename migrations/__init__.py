"""The migrations: numbered, short, limited in time, one at a time. `upgrade` brings a database up to date.

`why_unfit` says why this release must not work with a database: it is of no release, of a newer one, or was changed.

Importing Alembic takes longer than most commands run, so it is imported only to migrate. `is_up_to_date` does not
need it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from app.errors import Refused
from app.postgres.connections import engine
from app.postgres.database import has_tables, transaction
from app.settings import settings
from migrations import fingerprint


def bring_up_to_date() -> None:
    """Bring this process's database up to date, if it is not.

    Raises:
        Refused: a migration is needed, but the connection goes through a pooler. The lock that serialises migrations
            would stay with a server connection that the pooler gives to others. Or the database is unfit.
    """
    if is_up_to_date():
        require_ours(whole=True)
        return
    if settings().database_pooler:
        raise Refused(
            "Migrations do not work through a pooler. Give `points migrate` the address of PostgreSQL itself"
            " in DATABASE_URL, and POINTS_DATABASE_POOLER=false."
        )
    upgrade(settings().database_url)


OLDEST_POSTGRESQL = 15


def require_fit(connection: Connection) -> None:
    """Check that a database suits the service, before anything is created in it.

    Raises:
        Refused: PostgreSQL is too old, the encoding cannot hold every name and address, or the role may not create
            tables in it: since PostgreSQL 15 only its owner may.
    """
    version, release, encoding, may_create, role, schema = connection.execute(_SERVER).one()
    if version < OLDEST_POSTGRESQL * 10_000:
        raise Refused(f"PostgreSQL is {release}, but must be {OLDEST_POSTGRESQL} or newer.")
    if encoding != "UTF8":
        raise Refused(
            f"The database's encoding is {encoding}, but must be UTF8: create it with ENCODING 'UTF8' TEMPLATE"
            " template0."
        )
    if not may_create:
        raise Refused(
            f"The role {role} may not make tables in the schema {schema}. Its owner, or a superuser, can let it:"
            f" GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}."
        )


_SERVER = text("""
    SELECT CAST(current_setting('server_version_num') AS int), current_setting('server_version'),
           current_setting('server_encoding'),
           -- A role without USAGE on any schema of its path has no current schema.
           coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
           quote_ident(current_user), quote_ident(coalesce(current_schema(), 'public'))
""")


if TYPE_CHECKING:
    from alembic.config import Config


def upgrade(url: str, revision: str = "head") -> None:
    """Migrate the database at `url` up to a revision, unless it is there already.

    Raises:
        Refused: the database does not suit the service.
    """
    from alembic import command  # noqa: PLC0415  # See the head of this file.

    command.upgrade(_config(url), revision)


def downgrade(url: str, revision: str) -> None:
    """Migrate the database at `url` down to a revision, or to `base`."""
    from alembic import command  # noqa: PLC0415  # See the head of this file.

    command.downgrade(_config(url), revision)


def newest() -> str:
    """Return the revision that this code expects: the last name, since the files are numbered."""
    return max(fingerprint.digests())


def is_up_to_date() -> bool:
    """Tell whether this process's database is at the revision that this code expects, or at a later one.

    Code also works with newer tables (docs/migrations.md), so a release can be rolled back.
    """
    found = revision()
    return found is not None and found >= newest()


def revision() -> str | None:
    """Return the revision of this process's database; None if it was never migrated."""
    with transaction() as connection:
        return _revision_of(connection)


def _revision_of(connection: Connection) -> str | None:
    has_any = connection.execute(text("SELECT to_regclass('alembic_version')")).scalar_one() is not None
    found: str | None = connection.execute(_REVISION).scalar_one_or_none() if has_any else None
    return found


def why_unfit(connection: Connection, *, whole: bool = False, may_be_older: bool = False) -> str | None:
    """Say in a sentence why this release must not work with a database; None if it may.

    Args:
        whole: also compare each object of the schema. Otherwise only what the migration has noted is looked at.
        may_be_older: whether it is about to be migrated.
    """
    found, noted = _revision_of(connection), fingerprint.head(connection)
    if found is None and not has_tables(connection):
        return None if may_be_older else "PostgreSQL answers, but has no tables yet: run `points migrate`."
    if found is None or noted is None:
        differs = fingerprint.differences_by_name(connection) if whole else None
        return _OF_NO_RELEASE.format("its tables have no fingerprint" + (f" ({differs})" if differs else ""))
    if found < newest() and not may_be_older:
        return f"The database is at revision {found}, but this release needs {newest()}: run `points migrate`."
    if found == max(noted.digests) and (other := _why_another(found, noted)) is not None:
        return other
    changed = fingerprint.differences(connection) if whole else None
    if found != max(noted.digests):
        changed = f"alembic_version says {found}, but the last migration was {max(noted.digests)}"
    return None if changed is None else _CHANGED.format(changed)


def _why_another(found: str, noted: fingerprint.Head) -> str | None:
    """Say why the migrations that made a database are not for this code; None if they are."""
    ours = fingerprint.digests()
    others = [name for name, digest in noted.digests.items() if ours.get(name, digest) != digest]
    if others:
        return _OF_NO_RELEASE.format(f"its migration {others[0]} is another than that of this release")
    if noted.read_by > newest():
        return (
            f"The database is of a newer release: its revision {found} is for code of revision {noted.read_by} or"
            f" later, but this code is of {newest()}; deploy the newer release."
        )
    return None


_OF_NO_RELEASE = "The database was made by no release: {}; use the code that made it, or an empty database."
_CHANGED = "The database was changed by hand: {}; undo that, since nothing is served from it."


def require_ours(*, whole: bool = False) -> None:
    """Check that this release may work with this process's database.

    Raises:
        Refused: it must not.
    """
    with transaction() as connection:
        if (sentence := why_unfit(connection, whole=whole)) is not None:
            raise Refused(sentence)


def end_if_unfit() -> None:
    """End a part that starts on a database which is not for it. One that is away or empty is said by `/readyz`.

    Raises:
        SystemExit: with the reason.
    """
    try:
        with engine().connect() as connection:
            sentence = why_unfit(connection, whole=True) if has_tables(connection) else None
    except SQLAlchemyError:
        return
    finally:
        engine().dispose()  # No process that forks keeps a connection.
    if sentence is not None:
        raise SystemExit(f"points: {sentence}")


_REVISION = text("SELECT version_num FROM alembic_version")


def _config(url: str) -> "Config":
    from alembic.config import Config  # noqa: PLC0415  # See the head of this file.

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["url"] = url
    return config
