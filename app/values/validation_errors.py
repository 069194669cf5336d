"""The faults of a request, collected so that its answer reports them all."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from app.errors import InvalidRequest

ENTRIES_LISTED_MAX = 100
UNKNOWN_OF_ENTRY_MAX = 10
# A longer name is cut in sentences, and no similar name is searched for it: comparing long texts is slow.
_NAME_LENGTH_MAX = 64


class FaultsFound:
    """The faults found so far, by field. Of a list, the first 100 entries at fault are listed, and the rest counted."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self._list = ""
        # Entries by their keys: `recipients.3`, `items.3`.
        self._listed: set[str] = set()
        self._not_listed: set[str] = set()
        self.list_is_full = False
        self._all_looked_at = True

    def add(self, field: str, sentence: str) -> None:
        self._found.setdefault(field, []).append(sentence)

    def add_entry(self, key: str, sentence: str) -> None:
        """Add a fault of a list's entry, keyed by its place: `recipients.3`, `items.3.amount`."""
        if self._count_entry(key):
            self.add(key, sentence)

    def add_unknown_in_entry(self, key: str, names: Iterable[str], known: Collection[str]) -> None:
        """Add a fault for each unknown field of the entry at `key`."""
        if not self._count_entry(key):
            return
        unknown = [name for name in names if name not in known]
        for name in unknown[:UNKNOWN_OF_ENTRY_MAX]:
            field = f"{key}.{shortened(name)}" if name else key
            self.add(field, unknown_name("field", name, known, taker="an item"))
        self._add_more_unknown("field", len(unknown) - UNKNOWN_OF_ENTRY_MAX, whole=key)

    def skip_entry(self, key: str) -> None:
        """Count an entry that is not looked at. The list must be full."""
        self._all_looked_at = False
        self._count_entry(key)

    def _count_entry(self, key: str) -> bool:
        """Count an entry at fault, once, and tell whether its faults are listed."""
        self._list, place, *_ = key.split(".", 2)
        entry = f"{self._list}.{place}"
        if entry not in self._listed:
            (self._not_listed if self.list_is_full else self._listed).add(entry)
            self.list_is_full = len(self._listed) >= ENTRIES_LISTED_MAX
        return entry in self._listed

    def add_unknown(self, kind: str, names: Iterable[str], known: Collection[str], *, whole: str) -> None:
        """Add a fault for each name that the call does not know, with the nearest known name.

        Args:
            kind: `field` or `parameter`.
            names: the names sent.
            known: the names that the call takes.
            whole: the key of faults without a name of their own: an empty name, or too many unknown names.
        """
        unknown = [name for name in names if name not in known]
        for name in unknown[:ENTRIES_LISTED_MAX]:
            self.add(shortened(name) or whole, unknown_name(kind, name, known, taker="this call"))
        self._add_more_unknown(kind, len(unknown) - ENTRIES_LISTED_MAX, whole=whole)

    def _add_more_unknown(self, kind: str, more: int, *, whole: str) -> None:
        if more > 0:
            self.add(whole, f"{more} more {kind}{' is' if more == 1 else 's are'} not known.")

    @property
    def is_empty(self) -> bool:
        return not self._found

    def raise_if_any(self) -> None:
        if more := len(self._not_listed):
            are = "entry is" if more == 1 else "entries are"
            maybe = "" if self._all_looked_at else " or not looked at"
            self.add(self._list, f"{more} more {are} at fault{maybe}.")
        if self._found:
            raise InvalidRequest(self._found)


def unknown_name(kind: str, name: str, known: Collection[str], *, taker: str) -> str:
    """Say that there is no field or parameter (`kind`) of this name. Name the nearest, or those `taker` takes."""
    near = [] if len(name) > _NAME_LENGTH_MAX else get_close_matches(name.lower(), known, n=1)
    taken = f"{taker} takes {', '.join(known)}." if known else f"{taker} takes no {kind}."
    return f"There is no {kind} of this name: {f'did you mean {near[0]}?' if near else taken}"


def shortened(name: str) -> str:
    """Return the name for a key of a fault, cut where it is long."""
    return f"{name[:_NAME_LENGTH_MAX]}…" if len(name) > _NAME_LENGTH_MAX else name
