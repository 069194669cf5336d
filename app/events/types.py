"""Which types of events a webhook takes: names, `batch.*` for all of a noun, `*` for all."""

from collections.abc import Iterable

from app.events.log import TYPES, types_like

# All valid patterns, to find the nearest one to a misspelt one.
PATTERNS = ("*", *sorted({f"{kind.partition('.')[0]}.*" for kind in TYPES if "." in kind}), *TYPES)


def matching(patterns: Iterable[str]) -> list[str] | None:
    """Return the types that any of the patterns matches; None if that is all of them."""
    written = set(patterns)
    if "*" in written:
        return None
    meant = {kind for pattern in written for kind in types_like(pattern)}
    return [kind for kind in TYPES if kind in meant]
