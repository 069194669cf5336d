"""The fields of a person in a body, and what `FakePoints` says of them, as the service does."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from points_client.testing.fields import Faults, address_fault, is_given, kind_of, text_fault

OF_SANDBOX = ("email", "first_name", "last_name")
OF_PLATFORM = (*OF_SANDBOX, "external_id")
REFERENCE = re.compile(r"[^\s\u0000-\u0020\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]{1,128}")


def person_in(body: Mapping[str, Any], known: Sequence[str], *, changes: bool = False) -> tuple[Faults, dict[str, Any]]:
    """Return the faults of a person, and the values if there are none; of `changes`, only what is in the body.

    Raises:
        NotInFake: it has something that `FakePoints` cannot judge.
    """
    faults, values = Faults(), dict[str, Any]()
    faults.add_unknown(body, known)
    for name in known:
        if changes and name not in body:
            continue
        value = body.get(name)
        if (sentence := _FAULTS[name](name, value)) is not None:
            faults.add(name, sentence)
        elif not is_given(value):
            values[name] = "" if name == "last_name" else None
        else:
            values[name] = str(value) if name == "external_id" else str(value).strip()
    if changes and not values and not faults:
        faults.add("body", f"The body must have at least one of {', '.join(known)}.")
    return faults, values


def name_fault(name: str, value: object) -> str | None:
    """Say what is wrong with a name that must be there."""
    if not is_given(value):
        return f"The {name} field is required."
    if (sentence := text_fault(name, value, 255)) is not None:
        return sentence
    return None if str(value).strip() else f"The {name} must not be blank."


def reference_fault(name: str, value: object) -> str | None:
    """Say what is wrong with a caller's own id, which may be missing."""
    if not is_given(value):
        return None
    if not isinstance(value, str):
        return f"The {name} must be a string, but is {kind_of(value)}."
    if len(value) > 128:
        return f"The {name} must have at most 128 characters, but has {len(value)}."
    sentence = f"The {name} must have visible characters only: no blanks and no control characters."
    return None if REFERENCE.fullmatch(value) else sentence


def _email_fault(name: str, value: object) -> str | None:
    if not is_given(value):
        return f"The {name} field is required."
    if not isinstance(value, str):
        return f"The {name} must be a string with an e-mail address, but is {kind_of(value)}."
    fault = address_fault(value)
    return fault and f"The {name} {fault}"


_FAULTS: dict[str, Callable[[str, object], str | None]] = {
    "email": _email_fault,
    "first_name": name_fault,
    "last_name": lambda name, value: text_fault(name, value, 255),
    "external_id": reference_fault,
}
