"""Which types of events a webhook takes, or a reader asks for: names, `batch.*` for all of a noun, `*` for all."""

from collections.abc import Iterable

from app.events.log import TYPES

# What may be written, for those who look for the nearest.
PATTERNS = ("*", *sorted({f"{kind.partition('.')[0]}.*" for kind in TYPES if "." in kind}), *TYPES)


def matching(patterns: Iterable[str]) -> list[str] | None:
    """Return the types that any of the patterns stands for; None for all of them."""
    written = set(patterns)
    if "*" in written:
        return None
    return [kind for kind in TYPES if kind in written or f"{kind.partition('.')[0]}.*" in written]
