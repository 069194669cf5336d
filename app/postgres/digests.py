"""Digests of rows: an answer that was given is bound to its row, so that the audit sees any later change of it."""

from collections.abc import Sequence


def digest(columns: Sequence[str], of: str, **new: str) -> str:
    """Word in SQL a digest over columns of a row.

    Args:
        of: the alias of the row.
        new: expressions in place of columns, for a statement that sets them.
    """
    values = ", ".join(_as_text(column, new.get(column, f"{of}.{column}")) for column in columns)
    return f"sha256(convert_to(CAST(ROW({values}) AS text), 'UTF8'))"


def _as_text(column: str, value: str) -> str:
    """Word a value so that its text does not depend on settings of the session, such as the time zone."""
    if column.endswith("_at"):
        return f"extract(epoch FROM CAST({value} AS timestamptz))"
    if column.endswith("_hash"):
        return f"encode(CAST({value} AS bytea), 'hex')"
    return value
