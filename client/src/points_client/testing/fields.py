"""The single values of a body, and what `FakePoints` says of them, as the service does."""

import json
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

AMOUNT_MAX, INT64_MAX = 1_000_000_000, 2**63 - 1
_KINDS = {str: "a string", int: "an integer", float: "a number with a fraction or an exponent", bool: "a boolean"}
_KINDS |= {list: "an array", dict: "an object", type(None): "null"}
_ATOM, _LABEL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+", r"(?!xn--|..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_PLAIN = re.compile(rf"(?=.{{3,254}}\Z)(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LABEL}(?<=[A-Za-z])\Z")


class NotInFake(NotImplementedError):
    """`FakePoints` does not know this, and does not guess: run the service itself."""

    def __init__(self, what: str) -> None:
        super().__init__(f"FakePoints does not know {what}: run the service itself.")


class Faults(dict[str, list[str]]):
    """Field names with their sentences."""

    def add(self, field: str, sentence: str) -> None:
        self.setdefault(field, []).append(sentence)
        if len(self) > 100:
            raise NotInFake("how more than 100 faults are told")

    def add_unknown(self, names: Iterable[str], known: Sequence[str], prefix: str = "") -> None:
        for name in names:
            if name not in known:
                self.add(f"{prefix}{name}", unknown(name, known, "an item" if prefix else "this call"))


def unknown(name: str, known: Sequence[str], taker: str, kind: str = "field") -> str:
    if not 0 < len(name) <= 64:
        raise NotInFake(f"a {kind} of such a name")
    near = get_close_matches(name.lower(), known, n=1)
    taken = f"{taker} takes {', '.join(known)}."
    return f"There is no {kind} of this name: {f'did you mean {near[0]}?' if near else taken}"


def parsed(content: bytes) -> dict[str, Any]:
    """Return a body.

    Raises:
        NotInFake: it is not plain JSON, or no object.
    """

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(found)) < len(found):
            raise NotInFake("a name that stands twice")
        return dict(found)

    def constant(_: str) -> None:
        raise NotInFake("a number that is not finite")

    try:
        body = json.loads(content.decode(), object_pairs_hook=pairs, parse_constant=constant)
        json.dumps(body, ensure_ascii=False).encode()
    except (RecursionError, ValueError):
        raise NotInFake("a body that is not JSON") from None
    if not isinstance(body, dict):
        raise NotInFake("a body that is no object")
    return body


def is_given(value: object) -> bool:
    return value is not None and value not in ("", [])


def key_of(email: str) -> str:
    return email.strip().lower()


def address_fault(raw: str) -> str | None:
    text = raw.strip()
    if _PLAIN.match(text):
        return None
    if not text:
        return "must be an e-mail address, but is blank."
    if len(text) > 254:
        return f"must be an e-mail address of at most 254 characters, but has {len(text)}."
    if "@" not in text:
        return "must be an e-mail address: it has no @-sign."
    raise NotInFake(f"whether {text!r} is an e-mail address")


def amount_fault(amount: Any) -> str | None:
    if type(amount) is not int:
        return f"The amount must be an integer, but is {kind_of(amount)}."
    if not 1 <= amount <= AMOUNT_MAX:
        return f"The amount must be between 1 and {AMOUNT_MAX} points, but is {shown_number(amount)}."
    return None


def text_fault(name: str, value: object, length_max: int) -> str | None:
    if not is_given(value):
        return None
    if not isinstance(value, str):
        return f"The {name} must be a string, but is {kind_of(value)}."
    if len(value) > length_max:
        return f"The {name} must have at most {length_max} characters, but has {len(value)}."
    return f"The {name} must not contain a NUL character." if "\0" in value else None


def shown_number(number: int) -> str:
    return str(number) if abs(number) <= INT64_MAX else "a number beyond 64 bits"


def kind_of(value: object) -> str:
    return _KINDS[type(value)]
