"""Two PostgreSQLs, one the standby of the other, and a release."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import forget_everything
from tests.operations.server import Pair, Server, standby_of
from tests.service import release


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Run a primary and a standby of it, and let this process be a service that knows both."""
    primary = Server.migrated(tmp_path / "primary")
    primary.set(
        autovacuum="off", max_prepared_transactions="1"
    )  # What is vacuumed may break off a read of the standby.
    with primary.running(monkeypatch):
        standby = standby_of(primary, tmp_path)
        with standby.running(monkeypatch):
            monkeypatch.setenv("DATABASE_URL", primary.postgresql.url())
            monkeypatch.setenv("DATABASE_READ_URL", standby.postgresql.url())
            forget_everything()
            yield Pair(primary, standby)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.repository(tmp_path_factory.mktemp("release") / "tree")


@pytest.fixture(scope="module")
def released(tree: Path) -> Path:
    """Return the folder with the files of a release."""
    done = release.release(tree)
    assert done.returncode == 0, done.stderr
    return tree / "dist" / release.VERSION
