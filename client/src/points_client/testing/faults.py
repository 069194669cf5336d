"""The faults of a body, as the service finds them, word for word. What `FakePoints` cannot tell, it raises."""

from collections.abc import Mapping, Sequence
from typing import Any

from points_client.testing.fields import (
    INT64_MAX,
    Faults,
    NotInFake,
    address_fault,
    amount_fault,
    is_given,
    key_of,
    kind_of,
    shown_number,
    text_fault,
    unknown,
)
from points_client.testing.people import reference_fault

RECIPIENTS_MAX = 10_000
FIELDS = ("recipients", "recipient", "items", "amount", "atomic", "label", "expect", "metadata")
ITEM_FIELDS = ("email", "amount", "label", "reference")
_OF_SEND = ("send_at", "hold_days")


def items_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the items of a body without faults, with its defaults; what is missing is None."""
    emails = [body["recipient"]] if is_given(body.get("recipient")) else body.get("recipients")
    items = body["items"] if is_given(body.get("items")) else [{"email": email} for email in emails or ()]
    defaults = {name: body.get(name) or None for name in ("amount", "label")}
    return [
        {**defaults, "reference": None, **{name: item[name] for name in item if is_given(item[name])}} for item in items
    ]


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
        faults.add("atomic", f"The atomic field must be true or false, but is {kind_of(atomic)}.")
    _check(faults, "label", text_fault("label", body.get("label"), 255))
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
        _check(faults, "amount", amount_fault(amount))
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


def _points(body: Mapping[str, Any], given: Sequence[str], count: int) -> int | None:
    """Return the points for all together; None when an amount is missing or at fault."""
    default = body.get("amount")
    amounts: list[Any] = [default] * count
    if "items" in given:
        items = body["items"] if isinstance(body["items"], list) else []
        own = [item.get("amount") if isinstance(item, dict) else False for item in items]
        amounts = [amount if is_given(amount) else default for amount in own]
    if any(amount_fault(amount) is not None for amount in amounts) or len(amounts) != count:
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
    wrong = f"must be a string with an e-mail address, but is {kind_of(one)}."
    fault = address_fault(one) if isinstance(one, str) else wrong
    _check(faults, "recipient", fault and f"The recipient {fault}")


def _check_recipients(body: Mapping[str, Any], faults: Faults) -> None:
    recipients = body["recipients"]
    if not isinstance(recipients, list):
        faults.add("recipients", f"The recipients must be an array of e-mail addresses, but are {kind_of(recipients)}.")
        return
    if len(recipients) > RECIPIENTS_MAX:
        faults.add("recipients", f"There must be at most {RECIPIENTS_MAX} recipients, but there are {len(recipients)}.")
    first: dict[str, int] = {}
    for place, entry in enumerate(recipients[:RECIPIENTS_MAX]):
        if not isinstance(entry, str):
            fault: str | None = f"must be a string with an e-mail address, but is {kind_of(entry)}."
        elif (fault := address_fault(entry)) is None and (seen := first.setdefault(key_of(entry), place)) != place:
            fault = f"is the same address as recipients.{seen}."
        _check(faults, f"recipients.{place}", fault and f"The entry {fault}")


def _check_items(body: Mapping[str, Any], faults: Faults) -> None:
    items = body["items"]
    if not isinstance(items, list):
        faults.add("items", f"The items must be an array of objects, but are {kind_of(items)}.")
        return
    if len(items) > RECIPIENTS_MAX:
        faults.add("items", f"There must be at most {RECIPIENTS_MAX} items, but there are {len(items)}.")
    addresses: dict[str, tuple[int, bool]] = {}
    references: dict[str, int] = {}
    for place, item in enumerate(items[:RECIPIENTS_MAX]):
        if not isinstance(item, dict):
            faults.add(f"items.{place}", f"The item must be an object, but is {kind_of(item)}.")
            continue
        faults.add_unknown(item, ITEM_FIELDS, f"items.{place}.")
        _check_reference(item.get("reference"), place, references, faults)
        _check_email(item, place, addresses, faults)
        _check_amount(item.get("amount"), place, body, faults)
        if item.get("label") != body.get("label"):
            _check(faults, f"items.{place}.label", text_fault("label", item.get("label"), 255))


def _check_reference(reference: object, place: int, references: dict[str, int], faults: Faults) -> None:
    sentence = reference_fault("reference", reference)
    if sentence is None and is_given(reference):
        first = references.setdefault(str(reference), place)
        sentence = None if first == place else f"The reference is the same as items.{first}.reference."
    _check(faults, f"items.{place}.reference", sentence)


def _check_email(item: Mapping[str, Any], place: int, addresses: dict[str, tuple[int, bool]], faults: Faults) -> None:
    email, has_reference = item.get("email"), is_given(item.get("reference"))
    if not isinstance(email, str) or not email:
        fault: str | None = f"must be a string, but is {kind_of(email)}." if is_given(email) else "field is required."
    elif (fault := address_fault(email)) is None:
        first, had_reference = addresses.setdefault(key_of(email), (place, has_reference))
        if first != place and not (has_reference and had_reference):
            fault = f"is the same address as items.{first}.email: if that is meant, give each a reference."
    _check(faults, f"items.{place}.email", fault and f"The email {fault}")


def _check_amount(amount: object, place: int, body: Mapping[str, Any], faults: Faults) -> None:
    if is_given(amount):
        _check(faults, f"items.{place}.amount", amount_fault(amount))
    elif not is_given(body.get("amount")):
        sentence = "The amount field is required: neither the item nor the body has one."
        faults.add(f"items.{place}.amount", sentence)


def _check_expect(expect: object, faults: Faults, count: int, points: int | None) -> None:
    if expect is None:
        return
    if not isinstance(expect, dict) or not expect:
        sentence = "The expect field must be an object with recipients, amount or both, but is"
        faults.add("expect", f"{sentence} {'an empty object' if expect == {} else kind_of(expect)}.")
        return
    for name in expect:
        if name not in ("recipients", "amount"):
            faults.add("expect", unknown(name, ("recipients", "amount"), "expect"))
    for name, what, sent in (("recipients", "recipients", count), ("amount", "points", points)):
        expected = expect.get(name)
        if expected is not None and type(expected) is not int:
            faults.add("expect", f"The {name} expected must be an integer, but is {kind_of(expected)}.")
        elif expected is not None and sent is not None and expected != sent:
            faults.add("expect", f"{shown_number(expected)} {what} are expected, but {sent} are sent.")


def _check_metadata(metadata: object, faults: Faults) -> None:
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        faults.add("metadata", f"The metadata must be an object, but are {kind_of(metadata)}.")
        return
    if not metadata:
        faults.add("metadata", "The metadata must have at least one key, but have none.")
    if len(metadata) > 20:
        faults.add("metadata", f"The metadata must have at most 20 keys, but have {len(metadata)}.")
    for place, (key, value) in enumerate(list(metadata.items())[:20], start=1):
        if (sentence := _metadata_fault(key, value)) is not None:
            faults.add("metadata", f"Key {place} of the metadata {sentence}")


def _metadata_fault(key: str, value: object) -> str | None:
    if not 1 <= len(key) <= 40:
        return f"must have 1 to 40 characters, but has {len(key)}."
    if not isinstance(value, str):
        return f"must have a string as its value, but has {kind_of(value)}."
    if len(value) > 500:
        return f"must have a value of at most 500 characters, but has one of {len(value)}."
    return "must not contain a NUL character, nor must its value." if "\0" in key + value else None


def _check(faults: Faults, field: str, sentence: str | None) -> None:
    if sentence:
        faults.add(field, sentence)
