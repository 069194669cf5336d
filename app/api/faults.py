"""The faults of one request: all of them are found before it is refused."""

from app.errors import InvalidRequest

ENTRIES_LISTED_MAX = 100


class FaultsFound:
    """The faults found so far, by field. Bad entries of the list are all counted, the first hundred named."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self._entries = 0
        self._not_looked_at = 0

    def add(self, field: str, sentence: str) -> None:
        self._found.setdefault(field, []).append(sentence)

    def add_entry(self, place: int, sentence: str) -> None:
        self._entries += 1
        if self._entries <= ENTRIES_LISTED_MAX:
            self.add(f"recipients.{place}", sentence)

    def skip_entry(self) -> None:
        self._not_looked_at += 1

    @property
    def list_is_full(self) -> bool:
        return self._entries >= ENTRIES_LISTED_MAX

    def raise_if_any(self) -> None:
        if (more := self._entries + self._not_looked_at - ENTRIES_LISTED_MAX) > 0:
            are = "entry is" if more == 1 else "entries are"
            maybe = " or not looked at" if self._not_looked_at else ""
            self.add("recipients", f"{more} more {are} at fault{maybe}.")
        if self._found:
            raise InvalidRequest(self._found)
