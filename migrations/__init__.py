"""The migrations: numbered, short, limited in time, one at a time. `upgrade` brings a database up to date."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from app.database import transaction


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database at `url` up to a revision; nothing to do is fine."""
    command.upgrade(_config(url), revision)


def downgrade(url: str, revision: str) -> None:
    """Take the database at `url` back to a revision, or to `base`."""
    command.downgrade(_config(url), revision)


def newest() -> str:
    """Return the revision that this code expects."""
    return str(ScriptDirectory.from_config(_config("")).get_current_head())


def is_up_to_date() -> bool:
    """Tell whether this process's database is at the revision that this code expects."""
    with transaction() as connection:
        return MigrationContext.configure(connection).get_current_revision() == newest()


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["url"] = url
    return config
