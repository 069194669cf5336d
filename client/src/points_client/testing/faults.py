"""The faults of a body, as the service finds them, word for word. What `FakePoints` cannot tell, it raises."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

AMOUNT_MAX, RECIPIENTS_MAX, INT64_MAX = 1_000_000_000, 10_000, 2**63 - 1
FIELDS = ("recipients", "recipient", "items", "amount", "atomic", "label", "expect", "metadata")
ITEM_FIELDS = ("email", "amount", "label", "reference")
_OF_SEND = ("send_at", "hold_days")
_KINDS = {str: "a string", int: "an integer", float: "a number with a fraction or an exponent", bool: "a boolean"}
_KINDS |= {list: "an array", dict: "an object", type(None): "null"}
_ATOM, _LABEL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+", r"(?!xn--|..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_PLAIN = re.compile(rf"(?=.{{3,254}}\Z)(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LABEL}(?<=[A-Za-z])\Z")
_REFERENCE = re.compile(r"[^\s\u0000-\u0020\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]{1,128}")


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


def items_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the items of a body without faults, with its defaults; what is missing is None."""
    emails = [body["recipient"]] if is_given(body.get("recipient")) else body.get("recipients")
    items = body["items"] if is_given(body.get("items")) else [{"email": email} for email in emails or ()]
    defaults = {name: body.get(name) or None for name in ("amount", "label")}
    return [
        {**defaults, "reference": None, **{name: item[name] for name in item if is_given(item[name])}} for item in items
    ]


def is_given(value: object) -> bool:
    return value is not None and value not in ("", [])


def faults_of(body: Mapping[str, Any], *, is_send: bool) -> Faults:
    """Return the faults of a body; empty when it is good.

    Raises:
        NotInFake: it has something that `FakePoints` cannot judge.
    """
    faults = Faults()
    faults.add_unknown(body, (*FIELDS, *_OF_SEND) if is_send else FIELDS)
    _require_known(body, is_send=is_send)
    atomic, amount = body.get("atomic"), body.get("amount")
    if is_given(atomic) and not isinstance(atomic, bool):
        faults.add("atomic", f"The atomic field must be true or false, but is {_kind(atomic)}.")
    _check(faults, "label", _text_fault("label", body.get("label"), 255))
    _check_metadata(body.get("metadata"), faults)
    given = [name for name in ("recipient", "recipients", "items") if is_given(body.get(name))]
    if "items" in given:
        _check_items(body, faults)
    _check_presence(given, faults)
    if "recipients" in given:
        _check_recipients(body, faults)
    if "recipient" in given:
        _check_recipient(body, faults)
    if is_given(amount):
        _check(faults, "amount", _amount_fault(amount))
    elif "items" not in given:
        faults.add("amount", "The amount field is required.")
    count = sum(len(body[name]) for name in ("recipients", "items") if isinstance(body.get(name), list))
    count += "recipient" in given
    _check_expect(body.get("expect"), faults, count, _points(body, given, count))
    return faults


def _require_known(body: Mapping[str, Any], *, is_send: bool) -> None:
    for name in _OF_SEND if is_send else ():
        if body.get(name) is not None:
            raise NotInFake(name)
    for name in ("expect", "metadata"):
        if body.get(name) in ("", [], {}):
            raise NotInFake(f"an empty {name}")


def _points(body: Mapping[str, Any], given: Sequence[str], count: int) -> int | None:
    """Return the points for all together; None when an amount is missing or at fault."""
    default = body.get("amount")
    amounts: list[Any] = [default] * count
    if "items" in given:
        items = body["items"] if isinstance(body["items"], list) else []
        own = [item.get("amount") if isinstance(item, dict) else False for item in items]
        amounts = [amount if is_given(amount) else default for amount in own]
    if any(_amount_fault(amount) is not None for amount in amounts) or len(amounts) != count:
        return None
    points: int = sum(amounts)
    if points > INT64_MAX:
        raise NotInFake("a sum beyond 64 bits")
    return points


def _check_presence(given: Sequence[str], faults: Faults) -> None:
    if not given:
        faults.add("recipient", "The recipient field is required when recipients is not present.")
        faults.add("recipients", "The recipients field is required when recipient is not present.")
    for name in given if len(given) > 1 else ():
        others = [other for other in given if other != name]
        how_many = "both" if len(given) == 2 else "all three"
        faults.add(name, f"Send either {' or '.join([name, *others])}, not {how_many}.")


def _check_recipient(body: Mapping[str, Any], faults: Faults) -> None:
    one = body["recipient"]
    wrong = f"must be a string with an e-mail address, but is {_kind(one)}."
    fault = _address_fault(one) if isinstance(one, str) else wrong
    _check(faults, "recipient", fault and f"The recipient {fault}")


def _check_recipients(body: Mapping[str, Any], faults: Faults) -> None:
    recipients = body["recipients"]
    if not isinstance(recipients, list):
        faults.add("recipients", f"The recipients must be an array of e-mail addresses, but are {_kind(recipients)}.")
        return
    if len(recipients) > RECIPIENTS_MAX:
        faults.add("recipients", f"There must be at most {RECIPIENTS_MAX} recipients, but there are {len(recipients)}.")
    first: dict[str, int] = {}
    for place, entry in enumerate(recipients[:RECIPIENTS_MAX]):
        if not isinstance(entry, str):
            fault: str | None = f"must be a string with an e-mail address, but is {_kind(entry)}."
        elif (fault := _address_fault(entry)) is None and (seen := first.setdefault(key_of(entry), place)) != place:
            fault = f"is the same address as recipients.{seen}."
        _check(faults, f"recipients.{place}", fault and f"The entry {fault}")


def _check_items(body: Mapping[str, Any], faults: Faults) -> None:
    items = body["items"]
    if not isinstance(items, list):
        faults.add("items", f"The items must be an array of objects, but are {_kind(items)}.")
        return
    if len(items) > RECIPIENTS_MAX:
        faults.add("items", f"There must be at most {RECIPIENTS_MAX} items, but there are {len(items)}.")
    addresses: dict[str, tuple[int, bool]] = {}
    references: dict[str, int] = {}
    for place, item in enumerate(items[:RECIPIENTS_MAX]):
        if not isinstance(item, dict):
            faults.add(f"items.{place}", f"The item must be an object, but is {_kind(item)}.")
            continue
        faults.add_unknown(item, ITEM_FIELDS, f"items.{place}.")
        _check_reference(item.get("reference"), place, references, faults)
        _check_email(item, place, addresses, faults)
        _check_amount(item.get("amount"), place, body, faults)
        if item.get("label") != body.get("label"):
            _check(faults, f"items.{place}.label", _text_fault("label", item.get("label"), 255))


def _check_reference(reference: object, place: int, references: dict[str, int], faults: Faults) -> None:
    if not is_given(reference):
        return
    if not isinstance(reference, str):
        fault: str | None = f"must be a string, but is {_kind(reference)}."
    elif len(reference) > 128:
        fault = f"must have at most 128 characters, but has {len(reference)}."
    elif not _REFERENCE.fullmatch(reference):
        fault = "must have visible characters only: no blanks and no control characters."
    else:
        first = references.setdefault(reference, place)
        fault = None if first == place else f"is the same as items.{first}.reference."
    _check(faults, f"items.{place}.reference", fault and f"The reference {fault}")


def _check_email(item: Mapping[str, Any], place: int, addresses: dict[str, tuple[int, bool]], faults: Faults) -> None:
    email, has_reference = item.get("email"), is_given(item.get("reference"))
    if not isinstance(email, str) or not email:
        fault: str | None = f"must be a string, but is {_kind(email)}." if is_given(email) else "field is required."
    elif (fault := _address_fault(email)) is None:
        first, had_reference = addresses.setdefault(key_of(email), (place, has_reference))
        if first != place and not (has_reference and had_reference):
            fault = f"is the same address as items.{first}.email: if that is meant, give each a reference."
    _check(faults, f"items.{place}.email", fault and f"The email {fault}")


def _check_amount(amount: object, place: int, body: Mapping[str, Any], faults: Faults) -> None:
    if is_given(amount):
        _check(faults, f"items.{place}.amount", _amount_fault(amount))
    elif not is_given(body.get("amount")):
        sentence = "The amount field is required: neither the item nor the body has one."
        faults.add(f"items.{place}.amount", sentence)


def _check_expect(expect: object, faults: Faults, count: int, points: int | None) -> None:
    if not is_given(expect):
        return
    if not isinstance(expect, dict):
        sentence = "The expect field must be an object with recipients, amount or both, but is"
        faults.add("expect", f"{sentence} {_kind(expect)}.")
        return
    for name in expect:
        if name not in ("recipients", "amount"):
            faults.add("expect", unknown(name, ("recipients", "amount"), "expect"))
    for name, what, sent in (("recipients", "recipients", count), ("amount", "points", points)):
        expected = expect.get(name)
        if expected is not None and type(expected) is not int:
            faults.add("expect", f"The {name} expected must be an integer, but is {_kind(expected)}.")
        elif expected is not None and sent is not None and expected != sent:
            faults.add("expect", f"{_number(expected)} {what} are expected, but {sent} are sent.")


def _check_metadata(metadata: object, faults: Faults) -> None:
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        faults.add("metadata", f"The metadata must be an object, but are {_kind(metadata)}.")
        return
    if len(metadata) > 20:
        faults.add("metadata", f"The metadata must have at most 20 keys, but have {len(metadata)}.")
    for place, (key, value) in enumerate(list(metadata.items())[:20], start=1):
        if (sentence := _metadata_fault(key, value)) is not None:
            faults.add("metadata", f"Key {place} of the metadata {sentence}")


def _metadata_fault(key: str, value: object) -> str | None:
    if not 1 <= len(key) <= 40:
        return f"must have 1 to 40 characters, but has {len(key)}."
    if not isinstance(value, str):
        return f"must have a string as its value, but has {_kind(value)}."
    if len(value) > 500:
        return f"must have a value of at most 500 characters, but has one of {len(value)}."
    return "must not contain a NUL character, nor must its value." if "\0" in key + value else None


def key_of(email: str) -> str:
    return email.strip().lower()


def _address_fault(raw: str) -> str | None:
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


def _amount_fault(amount: Any) -> str | None:
    if type(amount) is not int:
        return f"The amount must be an integer, but is {_kind(amount)}."
    if not 1 <= amount <= AMOUNT_MAX:
        return f"The amount must be between 1 and {AMOUNT_MAX} points, but is {_number(amount)}."
    return None


def _text_fault(name: str, value: object, length_max: int) -> str | None:
    if not is_given(value):
        return None
    if not isinstance(value, str):
        return f"The {name} must be a string, but is {_kind(value)}."
    if len(value) > length_max:
        return f"The {name} must have at most {length_max} characters, but has {len(value)}."
    return f"The {name} must not contain a NUL character." if "\0" in value else None


def _check(faults: Faults, field: str, sentence: str | None) -> None:
    if sentence:
        faults.add(field, sentence)


def _number(number: int) -> str:
    return str(number) if abs(number) <= INT64_MAX else "a number beyond 64 bits"


def _kind(value: object) -> str:
    return _KINDS[type(value)]
