"""The addresses of an erased user in the lists that members have uploaded.

Of a sent list exactly the lines that name the user are rewritten. A list that is not sent is a file of any form, in
which no line can be rewritten: it is deleted, and the member uploads another.
"""

import io
import re
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import orjson
from sqlalchemy import Connection, text

from app.postgres.database import transaction
from app.values.addresses import spellings

_STEP = 50
# More than this of one part of a workbook is not read.
_PART_BYTES_MAX = 256 * 1024 * 1024


def erase(user_id: int) -> None:
    """Take the addresses of an erased user out of every list, each in a transaction of its own."""
    after = 0
    while True:
        with transaction() as connection:
            place = {"user_id": user_id, "after": after, "limit": _STEP}
            some = list(connection.execute(_OLDER, place).scalars())
        if not some:
            return
        for upload_id in some:
            with transaction() as connection:
                _erase_from(connection, upload_id, user_id)
        after = some[-1]


# What was uploaded later is another's. The lines of a sent list are kept as long as its findings.
_OLDER = text("""
    SELECT id FROM uploads
    WHERE (sent_at IS NULL OR findings IS NOT NULL) AND id > :after
      AND created_at <= (SELECT max(changed_at) FROM former_addresses WHERE user_id = :user_id)
    ORDER BY id LIMIT :limit
""")


def _erase_from(connection: Connection, upload_id: int, user_id: int) -> None:
    row: Any = connection.execute(_LOCK, {"id": upload_id}).one_or_none()
    keys = list(connection.execute(_KEYS, {"user_id": user_id, "id": upload_id}).scalars())
    if row is None or not keys:
        return
    name = f"erased-{user_id}"
    lines = connection.execute(_REWRITE_PARTS, {"id": upload_id, "keys": keys, "name": name}).rowcount
    if row.sent_at is None:
        if lines or has_one(bytes(row.content), keys):
            connection.execute(_DELETE, {"id": upload_id})
        return
    address = _pattern(keys)
    findings, bad_lines = _without(row.findings, address, name), _without(row.bad_lines, address, name)
    if lines or (findings, bad_lines) != (row.findings, row.bad_lines):
        # A digest of the list would tell whether a guess of the address is right, so the list is not known again.
        findings = {key: value for key, value in findings.items() if key not in ("campaign", "choices")}
        values = {"findings": orjson.dumps(findings).decode(), "bad_lines": orjson.dumps(bad_lines).decode()}
        connection.execute(_KEEP, {"id": upload_id, "name": name, **values})


_LOCK = text("SELECT sent_at, content, findings, bad_lines FROM uploads WHERE id = :id FOR UPDATE")
_DELETE = text("DELETE FROM uploads WHERE id = :id")
# The addresses that were the user's when the list was uploaded.
_KEYS = text("""
    SELECT f.email_key FROM former_addresses f JOIN uploads u ON u.created_at <= f.changed_at
    WHERE f.user_id = :user_id AND u.id = :id
""")


def has_one(content: bytes, keys: Sequence[str]) -> bool:
    """Tell whether a file has one of these addresses in it, or may have: it cannot be read."""
    address = _pattern(keys, _AT_A_LENGTH if content.startswith(b"\xd0\xcf\x11\xe0") else _ALONE)
    try:
        return any(_has(words, address) for part in _parts(content) for words in _texts(part))
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, OSError, EOFError):
        return True


# An address that is no piece of another, and in a workbook of the old kind, where the length of the next text is behind
# each and may look like a letter.
_ALONE = r"(?<![\w.!#$%&*+^`{{|}}~-])(?<!\w['/=?])(?:{spelled})(?![.-]*\w)"
_AT_A_LENGTH = r"(?<![a-z0-9.!#$%&*+^`{{|}}~-])(?:{spelled})"


def _pattern(keys: Sequence[str], form: str = _ALONE) -> re.Pattern[str]:
    ways = {way for key in keys for spelling in spellings(key) for way in (spelling, escape(spelling))}
    return re.compile(form.format(spelled="|".join(map(re.escape, sorted(ways)))), re.IGNORECASE)


def _parts(content: bytes) -> Iterator[bytes]:
    """Yield a file as it is, or the parts of a workbook, which is a ZIP file."""
    if not content.startswith(b"PK"):
        yield content
        return
    with zipfile.ZipFile(io.BytesIO(content)) as workbook:
        for name in workbook.namelist():
            yield workbook.open(name).read(_PART_BYTES_MAX)


def _texts(content: bytes) -> Iterator[str]:
    """Yield what bytes may say: a text in UTF-8, or else in any way that a list may be written."""
    if b"\0" not in content:
        try:
            yield content.decode()
        except UnicodeDecodeError:
            pass
        else:
            return
    for encoding in ("cp1252", "utf-16-le", "utf-16-be"):
        yield content.decode(encoding, errors="ignore")
    yield content[1:].decode("utf-16-le", errors="ignore")  # In a workbook, a text begins anywhere.


def _without(value: Any, address: re.Pattern[str], name: str) -> Any:
    """Return JSON with `name` for each address. Of a line that has it, no cell is kept: others may have the name."""
    if isinstance(value, list):
        return [_without(entry, address, name) for entry in value]
    if isinstance(value, dict):
        without = {key: _without(part, address, name) for key, part in value.items()}
        if without != value and isinstance(value.get("cells"), list):
            without["cells"] = [name] * len(value["cells"])
        return without
    return address.sub(name, _composed(value)) if isinstance(value, str) and _has(value, address) else value


def _has(words: str, address: re.Pattern[str]) -> bool:
    return address.search(_composed(words)) is not None


def _composed(words: str) -> str:
    """Return a text with its accents in the letters, as addresses have them in their normalised form."""
    return unicodedata.normalize("NFC", words)


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
    UPDATE uploads SET digest = :name, findings = CAST(:findings AS json), bad_lines = CAST(:bad_lines AS json)
    WHERE id = :id
""")
