"""The fingerprint of a database: which migrations made it, and what they made: a comment of `alembic_version`.

Its first line names each migration with a digest of its text, the oldest revision whose code may use the tables, and
the server's version. Each other line names an object of the schema, with a digest of its definition. Partitions are
not in it, nor tables and functions that somebody has put beside ours.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, text

_VERSIONS = Path(__file__).parent / "versions"
_NAMED_MAX = 3
# The tables' text has one column a line, and its constraints begin with capitals.
_TABLE_OF_0001 = re.compile(r"^CREATE TABLE (\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r'^    "?([a-z]\w*)"? ', re.MULTILINE)


class Head(NamedTuple):
    """The first line of a fingerprint; `read_by` is the oldest revision whose code may use the tables."""

    read_by: str
    server: str
    digests: dict[str, str]


@cache
def digests() -> Mapping[str, str]:
    """Return a digest of each migration of this tree by its revision. Its comments and its layout do not count."""
    made: dict[str, str] = {}
    for path in sorted(_VERSIONS.glob("[0-9]*.py")):
        texts = [file.read_text() for file in (path, path.with_suffix(".sql")) if file.exists()]
        lines = (line.strip() for whole in texts for line in whole.splitlines())
        words = " ".join(line for line in lines if line and not line.startswith(("#", "--")))
        made[path.name.partition("_")[0]] = hashlib.sha256(words.encode()).hexdigest()[:16]
    return made


def head(connection: Connection) -> Head | None:
    """Return the first line of a database's fingerprint; None if it has none."""
    line: str | None = connection.execute(_HEAD).scalar_one()
    if not line:
        return None
    read_by, server, *pairs = line.split()
    return Head(read_by, server, dict(pair.split("=") for pair in pairs))


def write(connection: Connection, revision: str, read_by: str) -> None:
    """Keep the fingerprint of what the migrations up to a revision have made."""
    server, objects = schema(connection, valid_alone=True)
    known = [f"{name}={digest}" for name, digest in digests().items() if name <= revision]
    lines = [" ".join([read_by, server, *known]), *(f"{name}={digest}" for name, digest in objects.items())]
    # COMMENT takes no parameters, so PostgreSQL writes the text into the statement, quoted.
    statement = "SELECT format('COMMENT ON TABLE alembic_version IS %L', CAST(:lines AS text))"
    connection.exec_driver_sql(connection.execute(text(statement), {"lines": "\n".join(lines)}).scalar_one())


def differences(connection: Connection) -> str | None:
    """Name what differs from what the migrations have made; None if nothing does.

    Another major version of PostgreSQL may word a definition in another way: after a move to it only names count.
    """
    [first, *lines] = connection.execute(_WHOLE).scalar_one().split("\n")
    kept = dict(line.rsplit("=", 1) for line in lines)
    server, found = schema(connection)
    words = differing(kept, found)
    if server == first.split()[1]:
        words += [f"{name} was changed" for name in kept.keys() & found.keys() if kept[name] != found[name]]
    return _first_of(words)


def differences_by_name(connection: Connection) -> str | None:
    """Name the tables and columns of a database without a fingerprint that are not as in 0001; None if all are."""
    kept: set[str] = set()
    for table, lines in _TABLE_OF_0001.findall((_VERSIONS / "0001_tables.sql").read_text()):
        kept |= {f"table {table}", *(f"column {column} of {table}" for column in _COLUMN.findall(lines))}
    _, found = schema(connection)
    names = {name for name in found if name.startswith(("table ", "column "))}
    missing = _tables(kept) - _tables(names)
    return _first_of(differing({name for name in kept if name.partition(" of ")[2] not in missing}, names))


def differing(kept: Collection[str], found: Collection[str]) -> list[str]:
    """Say which objects are missing, and which were added to tables of ours; an index may be built at the moment."""
    ours = _tables(kept)
    added = [name for name in found if name not in kept and not name.startswith("index ")]
    return [f"{name} is missing" for name in kept if name not in found] + [
        f"{name} was added" for name in added if name.partition(" of ")[2] in ours
    ]


def _first_of(words: list[str]) -> str | None:
    words.sort(key=lambda word: (not word.startswith("table "), word))
    more = [f"and {len(words) - _NAMED_MAX} more"] if len(words) > _NAMED_MAX else []
    return ", ".join(words[:_NAMED_MAX] + more) or None


def _tables(names: Collection[str]) -> set[str]:
    return {name.removeprefix("table ") for name in names if name.startswith("table ")}


def schema(connection: Connection, *, valid_alone: bool = False) -> tuple[str, dict[str, str]]:
    """Return the major version of the server, and each object of the schema with a digest of its definition.

    An index that is not valid is being built or dropped, or was when a migration was cut off: it is not kept.
    """
    connection.execute(_WORDING)
    server = str(connection.execute(_SERVER).scalar_one())
    return server, {row.name: row.digest for row in connection.execute(_SCHEMA, {"valid_alone": valid_alone})}


# How PostgreSQL words constants and names of a definition, for this transaction: an operator's settings are no change.
_WORDING = text("""
    SELECT set_config(name, value, true)
    FROM (VALUES ('datestyle', 'ISO'), ('intervalstyle', 'postgres'), ('timezone', 'UTC'), ('bytea_output', 'hex'),
                 ('extra_float_digits', '1'), ('standard_conforming_strings', 'on'), ('quote_all_identifiers', 'off')
         ) AS wanted (name, value)
""")
_SERVER = text("SELECT CAST(current_setting('server_version_num') AS int) / 10000")
_WHOLE = text("SELECT coalesce(obj_description(to_regclass('alembic_version'), 'pg_class'), '')")
_HEAD = text("SELECT split_part(obj_description(to_regclass('alembic_version'), 'pg_class'), E'\\n', 1)")
# Storage options and the tablespace are the operator's.
_SCHEMA = text("""
    WITH ours AS (
        SELECT oid, relname, relkind, relpersistence, relrowsecurity FROM pg_class
        WHERE relnamespace = to_regnamespace(current_schema()) AND relkind IN ('r', 'p') AND NOT relispartition
            AND relname <> 'alembic_version'
    ), objects AS (
        SELECT 'table ' || relname AS name, concat_ws(' ', relkind, relpersistence, relrowsecurity) AS definition
        FROM ours
        UNION ALL
        SELECT 'column ' || attname || ' of ' || relname,
            concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,
                (SELECT collname FROM pg_collation WHERE pg_collation.oid = attcollation),
                (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE (adrelid, adnum) = (attrelid, attnum)))
        FROM ours JOIN pg_attribute ON attrelid = ours.oid WHERE attnum > 0 AND NOT attisdropped
        UNION ALL
        SELECT 'constraint ' || conname || ' of ' || relname,
            concat_ws(' ', pg_get_constraintdef(pg_constraint.oid), convalidated)
        FROM ours JOIN pg_constraint ON conrelid = ours.oid WHERE contype <> 'n' AND conparentid = 0
        UNION ALL
        SELECT 'index ' || CAST(indexrelid AS regclass) || ' of ' || relname, pg_get_indexdef(indexrelid)
        FROM ours JOIN pg_index ON indrelid = ours.oid WHERE indisvalid OR NOT :valid_alone
        UNION ALL
        SELECT 'trigger ' || tgname || ' of ' || relname, concat_ws(' ', pg_get_triggerdef(pg_trigger.oid), tgenabled)
        FROM ours JOIN pg_trigger ON tgrelid = ours.oid WHERE NOT tgisinternal
        UNION ALL
        SELECT 'function ' || CAST(pg_proc.oid AS regprocedure), pg_get_functiondef(pg_proc.oid)
        FROM pg_proc WHERE pronamespace = to_regnamespace(current_schema()) AND prokind IN ('f', 'p')
            AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = CAST('pg_proc' AS regclass)
                                                    AND objid = pg_proc.oid AND deptype = 'e')
    )
    SELECT name, md5(definition) AS digest FROM objects
""")
