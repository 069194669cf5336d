"""The migrations: numbered, short, limited in time, one at a time. `upgrade` brings a database up to date.

Importing Alembic takes longer than most commands run, so it is imported only to migrate. `is_up_to_date` does not
need it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text

from app.errors import Refused
from app.postgres.database import transaction
from app.settings import settings


def bring_up_to_date() -> None:
    """Bring this process's database up to date, if it is not.

    Raises:
        Refused: a migration is needed, but the connection goes through a pooler. The lock that serialises migrations
            would stay with a server connection that the pooler gives to others.
    """
    if is_up_to_date():
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
    return max(path.name.partition("_")[0] for path in (Path(__file__).parent / "versions").glob("[0-9]*.py"))


def is_up_to_date() -> bool:
    """Tell whether this process's database is at the revision that this code expects, or at a later one.

    Code also works with newer tables (docs/migrations.md), so a release can be rolled back.
    """
    found = revision()
    return found is not None and found >= newest()


def revision() -> str | None:
    """Return the revision of this process's database; None if it was never migrated."""
    with transaction() as connection:
        has_any = connection.execute(text("SELECT to_regclass('alembic_version')")).scalar_one() is not None
        found: str | None = connection.execute(_REVISION).scalar_one_or_none() if has_any else None
        return found


_REVISION = text("SELECT version_num FROM alembic_version")


def _config(url: str) -> "Config":
    from alembic.config import Config  # noqa: PLC0415  # See the head of this file.

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["url"] = url
    return config
