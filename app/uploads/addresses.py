"""The addresses in a list: their hashes, by which an erasure finds the list; and one that is taken out of texts.

An address is met exactly, never a piece of another: `lee@example.com` is not in `ash.lee@example.com`.
"""

import io
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import product

from app.errors import InvalidAddress
from app.recipient_files.text import open_text
from app.values.addresses import LENGTH_MAX, PLAIN, parse, spellings

# All before an @-sign and behind it, between blanks and the marks that lists put around an address. What is behind one
# may be before the next.
_MARKS = r"\s@,;:<>()\[\]\"\\"
_AROUND = re.compile(rf"(?<![^{_MARKS}])([^{_MARKS}]{{1,{LENGTH_MAX}}})@(?=([^{_MARKS}]{{1,{LENGTH_MAX}}}))")
# The end of a text that may be the beginning of an address, and the beginning that may be the end of one.
_BEGINNING = re.compile(r"[\w.!#$%&*+^`{|}~'/=?-]*\Z")
_END = re.compile(r"[\w.-]*")
_NO_LETTERS_FIRST, _NO_LETTERS_LAST = re.compile(r"^\W+"), re.compile(r"\W+$")


# Puts a name in the place of addresses in a text.
Erase = Callable[[str], str]


def address_hash(key: str) -> int:
    """Return 32 bits of a normalised address, as PostgreSQL's `int`."""
    return zlib.crc32(key.encode()) - 2**31


def hashes_in(content: bytes) -> set[int]:
    """Return the hashes of all addresses in the content of a list, also of those with other marks around them."""
    words = set(_AROUND.findall(composed(text_of(content)[0])))
    return {address_hash(key) for local, domain in words for key in _keys(local, domain)}


def _keys(local: str, domain: str) -> Iterator[str]:
    word = f"{local}@{domain}"
    if local[0].isalnum() and PLAIN.match(word):
        yield word.lower()
        return
    ends, domains = _BEGINNING.findall(local)[:1], {domain, *_END.findall(domain)[:1]}
    locals_ = {local, *ends, *(_NO_LETTERS_FIRST.sub("", end) for end in ends)}
    for first, last in product(locals_, {_NO_LETTERS_LAST.sub("", end) for end in domains}):
        with suppress(InvalidAddress):
            yield parse(f"{first}@{last}").key


def text_of(content: bytes) -> tuple[str, str]:
    """Return the content of a list as text, and its encoding."""
    if content.startswith(b"\0"):  # The sheets of a workbook.
        return content.decode(), "utf-8"
    text = open_text(io.BytesIO(content), "the list")
    return text.read(), text.encoding


def eraser(keys: Iterable[str], name: str) -> Erase:
    """Return what puts a name in the place of these normalised addresses in a text, however spelled."""
    address = re.compile(rf"{_spelled(keys)}(?![.-]*\w)", re.IGNORECASE)

    def erase(text: str) -> str:
        erased = address.sub(lambda match: match[0] if _is_a_piece(match) else name, composed(text))
        return text if erased == composed(text) else erased

    return erase


def _is_a_piece(match: re.Match[str]) -> bool:
    first = max(0, match.start() - LENGTH_MAX)
    before = _BEGINNING.search(match.string, first, match.start())
    return before is not None and re.search(r"\w", before[0]) is not None


def in_name(file: str, keys: Iterable[str], name: str) -> str:
    """Return a file's name with a name in the place of these addresses, also between hyphens and before an ending."""
    address = re.compile(rf"(?<![^\W_])(?<![.+']){_spelled(keys)}(?=\Z|[^\w.]|_|\.\w{{1,5}}\Z)", re.IGNORECASE)
    return address.sub(name, composed(file))


def _spelled(keys: Iterable[str]) -> str:
    """Return the pattern of these addresses."""
    spelled = {spelling for key in keys for spelling in spellings(key)}
    return f"(?:{'|'.join(map(re.escape, sorted(spelled)))})"


def composed(text: str) -> str:
    """Return a text with its accents in the letters, as addresses have them in their normalised form."""
    return unicodedata.normalize("NFC", text)
