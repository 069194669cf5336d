"""The addresses of an erased user in uploaded lists: each becomes `erased-<id>`, and all else stays.

A list is found by the hashes of its addresses. If it is not sent yet, the lines of the user are left out of it, and of
one that has no other nothing is left.
"""

from collections.abc import Mapping, Sequence
from io import StringIO
from operator import attrgetter, itemgetter
from typing import Any

import orjson
from sqlalchemy import Connection, text

from app.postgres.database import transaction
from app.recipient_files.columns import Item
from app.recipient_files.recipients import BadLine, Part
from app.uploads import parts as upload_parts
from app.uploads.addresses import Erase, address_hash, eraser, in_name, text_of
from app.uploads.uploads import BAD_LINES_SHOWN
from app.values.addresses import parse

_STEP = 50
_LEFT_OUT = "names a user who was erased."


def erase(user_id: int, keys: Sequence[str]) -> None:
    """Take the addresses of an erased user out of every list, each in a transaction of its own."""
    place = {"user_id": user_id, "after": 0, "limit": _STEP, "hashes": list(map(address_hash, keys))}
    while True:
        with transaction() as connection:
            some = connection.execute(_OLDER, place).all()
        if not some:
            return
        for upload_id, may_have_one in some:
            if may_have_one:
                with transaction() as connection:
                    _erase_from(connection, upload_id, user_id)
        place["after"] = some[-1].id


# What was uploaded later is another's. Of a sent list whose lines are no longer kept, its names are left.
_OLDER = text("""
    SELECT id, coalesce(address_hashes && CAST(:hashes AS int[]), false) OR name LIKE '%@%' OR sheet LIKE '%@%'
    FROM uploads
    WHERE id > :after AND created_at <= (SELECT max(changed_at) FROM former_addresses WHERE user_id = :user_id)
    ORDER BY id LIMIT :limit
""")


def _erase_from(connection: Connection, upload_id: int, user_id: int) -> None:
    row: Any = connection.execute(_LOCK, {"id": upload_id}).one_or_none()
    keys = list(connection.execute(_KEYS, {"user_id": user_id, "id": upload_id}).scalars())
    if row is None or not keys:
        return
    name = f"erased-{user_id}"
    erase = eraser(keys, name)
    names = {"name": in_name(row.name, keys, name), "sheet": None if row.sheet is None else erase(row.sheet)}
    connection.execute(_NAME, {"id": upload_id, **names})
    hashes = list(map(address_hash, keys))
    if row.findings is None or not set(hashes).intersection(row.address_hashes or ()):
        return
    changed = {column: _without(getattr(row, column), erase, name) for column in ("findings", "bad_lines")}
    was, parts_changed = row._asdict(), 0
    if row.sent_at is not None:
        parts_changed = connection.execute(_REWRITE_PARTS, {"id": upload_id, "keys": keys, "name": name}).rowcount
    else:
        changed["content"] = _without_lines(bytes(row.content), erase)
        if row.recipients is not None:
            changed |= _leave_out(connection, row, changed, keys, name)
    if not parts_changed and changed == {column: was[column] for column in changed}:
        return  # Another address has the same hash.
    if changed.get("recipients") == 0:
        connection.execute(_DELETE, {"id": upload_id})
        return
    # A digest of the list would tell whether a guess of the address is right, so the list is not known again.
    changed["findings"].pop("campaign", None)
    values = {**was, "hashes": hashes, "digest": row.digest and name, **changed}
    values |= {column: orjson.dumps(changed[column]).decode() for column in ("findings", "bad_lines")}
    connection.execute(_KEEP, values)


def _without_lines(content: bytes, erase: Erase) -> bytes:
    """Return a list with blank lines for those that have only this address, so that the rest keep their numbers.

    Of other lines, of those of a cell in quotes, and of the names of sheets, only the address is replaced.
    """
    text_, encoding = text_of(content)
    lines, is_in_quotes = [], False
    for line in StringIO(text_, newline=""):
        erased, has_odd_quotes = erase(line), line.count('"') % 2 == 1
        if erased != line and not (is_in_quotes or has_odd_quotes or "@" in erased or line.startswith("\0")):
            erased = line[len(line.rstrip("\r\n")) :]
        is_in_quotes ^= has_odd_quotes
        lines.append(erased)
    return "".join(lines).encode(encoding)


def _leave_out(
    connection: Connection, row: Any, now: Mapping[str, Any], keys: Sequence[str], name: str
) -> dict[str, Any]:
    """Leave the lines of the user out of a checked list, and return what is another of it; `now`: what is already."""
    parts, gone = list[Part](), list[tuple[int, Item]]()
    while (part := upload_parts.find(connection, row.id, len(parts) + 1)) is not None:
        pairs = list(zip(part.lines, part.items, strict=True))
        gone += [pair for pair in pairs if parse(pair[1].email).key in keys]
        stay = [pair for pair in pairs if parse(pair[1].email).key not in keys]
        parts.append(Part(part.number, [line for line, _ in stay], [item for _, item in stay], []))
    parts = [part._replace(number=number) for number, part in enumerate(filter(attrgetter("items"), parts), 1)]
    emails = [item.email for part in parts for item in part.items]
    upload_parts.drop(connection, [row.id])
    if parts:
        upload_parts.add(connection, row.id, parts)
    left_out = [BadLine(line, name, _LEFT_OUT)._asdict() | {"cells": [name], "fits": False} for line, _ in gone]
    bad = sorted([*now["bad_lines"], *left_out], key=itemgetter("line"))
    shown = [{field: line[field] for field in BadLine._fields} for line in bad[:BAD_LINES_SHOWN]]
    about = {"bad": len(bad), "bad_lines": shown, "first": emails[:3], "last": emails[-3:]}
    points = row.points - sum(item.amount or row.amount for _, item in gone)
    return {"bad_lines": bad, "findings": now["findings"] | about, "recipients": len(emails), "points": points}


def _without(value: Any, erase: Erase, name: str) -> Any:
    """Return JSON with `name` for each address. Of a line that has it, no cell is kept: others may have the name."""
    if isinstance(value, list):
        return [_without(entry, erase, name) for entry in value]
    if isinstance(value, dict):
        without = {key: _without(part, erase, name) for key, part in value.items()}
        if without != value and isinstance(value.get("cells"), list):
            without["cells"] = [name] * len(value["cells"])
        return without
    return erase(value) if isinstance(value, str) else value


_LOCK = text("""
    SELECT id, name, sheet, content, amount, recipients, points, digest, address_hashes, sent_at, findings, bad_lines
    FROM uploads WHERE id = :id FOR UPDATE
""")
_DELETE = text("DELETE FROM uploads WHERE id = :id")
_NAME = text("UPDATE uploads SET name = :name, sheet = :sheet WHERE id = :id")
# The addresses that were the user's when the list was uploaded.
_KEYS = text("""
    SELECT f.email_key FROM former_addresses f JOIN uploads u ON u.created_at <= f.changed_at
    WHERE f.user_id = :user_id AND u.id = :id
""")
_REWRITE_PARTS = text("""
    UPDATE upload_parts p SET emails = r.emails, email_keys = nullif(r.email_keys, r.emails)
    FROM (SELECT p.number, array_agg(CASE WHEN i.is_one THEN :name ELSE i.email END ORDER BY i.place) AS emails,
                 array_agg(CASE WHEN i.is_one THEN :name ELSE i.email_key END ORDER BY i.place) AS email_keys
          FROM upload_parts p
          CROSS JOIN LATERAL (SELECT *, email_key = ANY(CAST(:keys AS text[])) AS is_one
                              FROM unnest(p.emails, coalesce(p.email_keys, p.emails)) WITH ORDINALITY
                                       AS x (email, email_key, place)) i
          WHERE p.upload_id = :id
          GROUP BY p.number HAVING bool_or(i.is_one)) r
    WHERE p.upload_id = :id AND p.number = r.number
""")
_KEEP = text("""
    UPDATE uploads SET content = :content, recipients = :recipients, points = :points, digest = :digest,
                       findings = CAST(:findings AS json), bad_lines = CAST(:bad_lines AS json),
                       address_hashes = ARRAY(SELECT hash FROM unnest(address_hashes) AS hash
                                              WHERE hash <> ALL(CAST(:hashes AS int[])))
    WHERE id = :id
""")
