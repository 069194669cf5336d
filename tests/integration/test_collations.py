"""Texts are compared byte by byte, whatever the database's own order is and whatever a new image makes of it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

import migrations
from app.local.postgresql import PostgreSQL
from app.messaging import process_redis
from app.postgres.connections import engine
from tests.conftest import forget_everything
from tests.integration import books

_COMPOSE = Path(__file__).parents[2] / "docker-compose.yml"

# What PostgreSQL compares by a collation other than C: columns of tables, and keys and expressions of indexes.
_OTHERS = text("""
    SELECT format('%s.%s', attrelid::regclass, attname) FROM pg_attribute
    JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i') AND relname !~ '^alembic_version'
      AND attnum > 0 AND NOT attisdropped AND attcollation <> 0 AND attcollation <> 'pg_catalog."C"'::regcollation
    UNION ALL
    SELECT format('%s, collation of key %s', indexrelid::regclass, place) FROM pg_index
    JOIN pg_class c ON c.oid = indexrelid, unnest(indcollation) WITH ORDINALITY AS key (collation_id, place)
    WHERE relnamespace = 'public'::regnamespace AND relname !~ '^alembic_version'
      AND collation_id <> 0 AND collation_id <> 'pg_catalog."C"'::regcollation
    ORDER BY 1
""")
# By bytes, "_" and capitals stand where no language has them.
_EMAILS = ["a_b@example.com", "ab@example.com", "Zoe@example.com", "ann@example.com", "jörg@bücher.example"]


# The server of these tests is built without ICU, and a machine need not have a language's locale.
@pytest.fixture
def any_order(unmigrated: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a test a migrated database with a default order of its own."""
    url = make_url(unmigrated.url())
    order = "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'PG_UNICODE_FAST' LOCALE 'C'"  # The other tests run in 'C'.
    create = f"CREATE DATABASE ordered OWNER {url.username} ENCODING 'UTF8' TEMPLATE template0 {order}"
    with unmigrated._connect_as_superuser() as connection:
        connection.execute(create.encode())
        ours = url.set(database="ordered").render_as_string(hide_password=False)
        migrations.upgrade(ours)
        monkeypatch.setenv("DATABASE_URL", ours)
        forget_everything()
        yield
        forget_everything()
        connection.execute("DROP DATABASE ordered WITH (FORCE)")


@pytest.mark.usefixtures("any_order")
def test_no_column_and_no_index_hangs_on_the_order_of_the_database_and_all_is_the_same_in_any() -> None:
    with engine().connect() as connection:
        assert list(connection.execute(_OTHERS).scalars()) == []
        connection.exec_driver_sql("ALTER TABLE refills ADD forgotten text")
        connection.exec_driver_sql("CREATE INDEX forgotten ON refills ((amount::text))")
        found = list(connection.execute(_OTHERS).scalars())
        assert found == ["forgotten, collation of key 1", "forgotten.amount", "refills.forgotten"]
        connection.rollback()
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, _EMAILS, 10, idempotency_key="a_B")
    other = books.queue_batch(organization_id, _EMAILS, 10, idempotency_key="a_b")
    assert books.drain_all(organization_id) == [batch_id, other]
    assert [row.email for row in books.read_batch(organization_id, batch_id)[1]] == _EMAILS
    books.make_users(*_EMAILS)
    assert [books.balance_of_user(email) for email in _EMAILS] == [20] * len(_EMAILS)
    books.fold()
    assert books.breaches() == []


@pytest.mark.usefixtures("database", "broker")
def test_the_images_are_the_versions_that_these_tests_run_on() -> None:
    compose = _COMPOSE.read_text()
    [postgresql] = re.findall(r"^[\d.]+", books.value("SHOW server_version"))
    valkey = process_redis.redis().info("server")["valkey_version"]
    assert f"image: postgres:{postgresql}-trixie\n" in compose
    assert f"image: valkey/valkey:{valkey}\n" in compose
