"""The faults of one request, collected so that one answer reports them all."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from app.errors import InvalidRequest

ENTRIES_LISTED_MAX = 100
# A longer name is cut in sentences, and no similar name is searched for it: comparing long texts is slow.
_NAME_LENGTH_MAX = 64


class FaultsFound:
    """The faults found so far, by field. Of the faults of a list's entries, all are counted and the first 100 named."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self._list = ""
        self._entries = 0
        self._not_looked_at = 0

    def add(self, field: str, sentence: str) -> None:
        self._found.setdefault(field, []).append(sentence)

    def add_entry(self, key: str, sentence: str) -> None:
        """Add a fault of a list's entry, keyed by its place: `recipients.3`, `items.3.amount`."""
        self._list = key.partition(".")[0]
        self._entries += 1
        if self._entries <= ENTRIES_LISTED_MAX:
            self.add(key, sentence)

    def add_unknown_in_entry(self, key: str, names: Iterable[str], known: Collection[str]) -> None:
        """Add a fault for each unknown field of the entry at `key`."""
        for name in names:
            if name in known:
                continue
            # Finding the nearest name is slow, and a full list shows no more sentences.
            sentence = "" if self.list_is_full else unknown_name("field", name, known, taker="an item")
            self.add_entry(f"{key}.{_shortened(name)}" if name else key, sentence)

    def skip_entry(self) -> None:
        self._not_looked_at += 1

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
            self.add(_shortened(name) or whole, unknown_name(kind, name, known, taker="this call"))
        if (more := len(unknown) - ENTRIES_LISTED_MAX) > 0:
            self.add(whole, f"{more} more {kind}{' is' if more == 1 else 's are'} not known.")

    @property
    def list_is_full(self) -> bool:
        return self._entries >= ENTRIES_LISTED_MAX

    @property
    def is_empty(self) -> bool:
        return not self._found

    def raise_if_any(self) -> None:
        if (more := self._entries + self._not_looked_at - ENTRIES_LISTED_MAX) > 0:
            are = "entry is" if more == 1 else "entries are"
            maybe = " or not looked at" if self._not_looked_at else ""
            self.add(self._list, f"{more} more {are} at fault{maybe}.")
        if self._found:
            raise InvalidRequest(self._found)


def unknown_name(kind: str, name: str, known: Collection[str], *, taker: str) -> str:
    """Say that there is no field or parameter (`kind`) of this name. Name the nearest one, or those `taker` takes."""
    near = [] if len(name) > _NAME_LENGTH_MAX else get_close_matches(name.lower(), known, n=1)
    taken = f"{taker} takes {', '.join(known)}." if known else f"{taker} takes no {kind}."
    return f"There is no {kind} of this name: {f'did you mean {near[0]}?' if near else taken}"


def _shortened(name: str) -> str:
    return f"{name[:_NAME_LENGTH_MAX]}…" if len(name) > _NAME_LENGTH_MAX else name
