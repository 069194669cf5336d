"""The addresses of an erased user in the lists that members have uploaded.

Of a sent list the lines that name the user are rewritten. A list that is not sent is a file of any form, in which an
address cannot be replaced: it is deleted, and the member uploads another.
"""

import io
import re
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import orjson
from sqlalchemy import Connection, text

from app.postgres.database import transaction
from app.values.addresses import spellings

_STEP = 50
# A workbook is a ZIP file; more than this of one of its parts is not read.
_PART_BYTES_MAX = 256 * 1024 * 1024


def erase(user_id: int) -> None:
    """Rewrite or delete every list that has an address of an erased user."""
    _in_steps(_UNSENT, user_id, _delete_if_it_has_one)
    _in_steps(_SENT, user_id, _rewrite)


def _in_steps(ids: Any, user_id: int, step: Callable[[Connection, int, int, Sequence[str]], None]) -> None:
    """Do a step for each list, with the addresses that were the user's then, in a transaction of its own."""
    after = 0
    while True:
        with transaction() as connection:
            some = list(connection.execute(ids, {"user_id": user_id, "after": after, "limit": _STEP}).scalars())
        if not some:
            return
        for upload_id in some:
            with transaction() as connection:
                keys = list(connection.execute(_KEYS, {"user_id": user_id, "id": upload_id}).scalars())
                step(connection, upload_id, user_id, keys)
        after = some[-1]


_KEYS = text("""
    SELECT f.email_key FROM former_addresses f JOIN uploads u ON u.created_at <= f.changed_at
    WHERE f.user_id = :user_id AND u.id = :id
""")


# What was uploaded later is another's. The lines of a sent list are kept as long as its findings.
_OLDER = """id > :after AND created_at <= (SELECT max(changed_at) FROM former_addresses WHERE user_id = :user_id)
    ORDER BY id LIMIT :limit"""
_UNSENT = text(f"SELECT id FROM uploads WHERE sent_at IS NULL AND {_OLDER}")
_SENT = text(f"SELECT id FROM uploads WHERE sent_at IS NOT NULL AND findings IS NOT NULL AND {_OLDER}")


def _delete_if_it_has_one(connection: Connection, upload_id: int, _user_id: int, keys: Sequence[str]) -> None:
    row: Any = connection.execute(_LOCK_UNSENT, {"id": upload_id, "keys": list(keys)}).one_or_none()
    if row is not None and (row.is_recipient or has_one(bytes(row.content), keys)):
        connection.execute(_DELETE, {"id": upload_id})


_LOCK_UNSENT = text("""
    SELECT content, EXISTS (SELECT FROM upload_parts p WHERE p.upload_id = u.id
                              AND coalesce(p.email_keys, p.emails) && CAST(:keys AS text[])) AS is_recipient
    FROM uploads u WHERE id = :id AND sent_at IS NULL FOR UPDATE
""")
_DELETE = text("DELETE FROM uploads WHERE id = :id")


def has_one(content: bytes, keys: Sequence[str]) -> bool:
    """Tell whether a file has one of these addresses in it, or may have: it cannot be read."""
    spelled = [one for key in keys for one in spellings(key)]
    if not content.startswith(b"PK"):
        return _is_in(content, spelled)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as workbook:
            return any(_is_in(workbook.open(name).read(_PART_BYTES_MAX), spelled) for name in workbook.namelist())
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, OSError, EOFError):
        return True


def _is_in(content: bytes, keys: Sequence[str]) -> bool:
    texts = [content.decode(encoding, errors="ignore") for encoding in ("utf-8", "cp1252", "utf-16-le")]
    texts.append(content[1:].decode("utf-16-le", errors="ignore"))  # In a workbook, a text begins anywhere.
    texts = [_composed(text.lower()) for text in texts]
    return any(key in text or escape(key) in text for key in keys for text in texts)


def _composed(text: str) -> str:
    """Return a text with its accents in the letters, as addresses have them in their normalised form."""
    return unicodedata.normalize("NFC", text)


def _rewrite(connection: Connection, upload_id: int, user_id: int, keys: Sequence[str]) -> None:
    """Rewrite what the lines and the check of a sent list have of the addresses."""
    row: Any = connection.execute(_LOCK_SENT, {"id": upload_id}).one_or_none()
    if row is None or not keys:
        return
    name = f"erased-{user_id}"
    lines = connection.execute(_REWRITE_PARTS, {"id": upload_id, "keys": list(keys), "name": name}).rowcount
    spelled = [re.escape(one) for key in keys for one in spellings(key)]
    address = re.compile("|".join(spelled), re.IGNORECASE)
    findings, bad_lines = (_without(value, address, name) for value in (row.findings, row.bad_lines))
    if lines or (findings, bad_lines) != (row.findings, row.bad_lines):
        # A digest of the list would tell whether a guess of the address is right, so the list is not known again.
        findings = {key: value for key, value in findings.items() if key not in ("campaign", "choices")}
        values = {"findings": orjson.dumps(findings).decode(), "bad_lines": orjson.dumps(bad_lines).decode()}
        connection.execute(_KEEP, {"id": upload_id, "name": name, **values})


def _without(value: Any, address: re.Pattern[str], name: str) -> Any:
    """Return JSON with `name` for each address. Of a line that has one, no cell is kept: others may have the name."""
    if isinstance(value, str):
        return address.sub(name, _composed(value)) if address.search(_composed(value)) else value
    if isinstance(value, list):
        return [_without(one, address, name) for one in value]
    if not isinstance(value, dict):
        return value
    without = {key: _without(one, address, name) for key, one in value.items()}
    if without != value and isinstance(value.get("cells"), list):
        without["cells"] = [name] * len(value["cells"])
    return without


_LOCK_SENT = text("""
    SELECT findings, bad_lines FROM uploads WHERE id = :id AND findings IS NOT NULL FOR NO KEY UPDATE
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
    UPDATE uploads SET digest = :name, findings = CAST(:findings AS json), bad_lines = CAST(:bad_lines AS json)
    WHERE id = :id
""")
