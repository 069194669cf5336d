"""Files of one name that are told apart by a number in it: `people.result.1.csv`, `people.result.2.csv`."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path


class Numbered:
    """The files that are named after a path, with a number before its suffix, or before another one (`suffix`)."""

    def __init__(self, path: Path, *, suffix: str | None = None) -> None:
        self._folder = path.parent
        self._after = path.suffix if suffix is None else suffix
        self._before = path.name.removesuffix(self._after) + "."

    def existing(self) -> Iterator[Path]:
        """Yield those that there are, by their numbers; some may have been deleted."""
        named = re.compile(rf"{re.escape(self._before)}([1-9][0-9]*){re.escape(self._after)}")
        found = {int(match[1]): path for path in self._folder.iterdir() if (match := named.fullmatch(path.name))}
        return (found[number] for number in sorted(found))

    def first_free(self) -> Path:
        """Return the first that there is not."""
        return next(path for number in count(1) if not (path := self._named(number)).exists())

    def _named(self, number: int) -> Path:
        return self._folder / f"{self._before}{number}{self._after}"
