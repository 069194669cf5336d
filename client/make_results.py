"""Makes `points_client/results.py`: a dataclass for each answer of the service, from its description."""

import keyword
from collections.abc import Iterator, Mapping
from typing import Any

from client.described import annotation, answers, calls, class_of, docstring, named, prose, references, rows_of

# What the description does not say of a field: that older services lack it, that `repr` hides it, that we add it.
_FIELDS = {
    "Counts.reversed": "int = 0",
    "Delivery.created_at": "datetime | None = None",
    "Delivery.ms": "int | None = None",
    "Key.made_by": "KeyMaker | None = None",
    "NewKey.key": "str = field(repr=False)",
    "Organization.last_refill": "int | None = None",
    "PlatformOrganization.approval_of": 'str = "console"',
    "Reversed.idempotency_key": "str",
    "Reversed.replayed": "bool",
    "Reversed.status": "str",
    "Sent.batch_id": "int",
    "Sent.idempotency_key": "str",
    "Sent.replayed": "bool",
    "Sent.status": "str",
    "SandboxUser.claimed": "Claimed | None = None",
    "Transaction.reversed": "int = 0",
    "Transaction.state": 'str = ""',
    "Verified.awaits_approval": "bool = False",
    "Webhook.created_at": "datetime | None = None",
    "Webhook.failures": "int = 0",
    "Webhook.position": "int = 0",
    "Webhook.secret": "str | None = field(default=None, repr=False)",
    "Webhook.types": "tuple[str, ...] = ()",
}
_ABOUTS = {
    "Organization.scheduled": "What is scheduled; only `organization()` fills it.",
    "Organization.limits": "The limits of a send; only `organization()` fills them.",
    "Sent": "The outcome of a send. `transactions` is empty, and both figures are None, until it is issued.",
    "Sent.status": "`issued`; or `queued`: the wait ran out, and it will be issued once; or `scheduled`, or "
    "`awaiting_approval`: it may be rejected.",
    "Sent.idempotency_key": "The key of the call, given or made.",
    "Sent.replayed": "It was issued before this call was made.",
    "Reversed": "The outcome of `reverse`. `transactions` is empty, and both figures are None, until it is done.",
    "Reversed.status": "`done`; or `queued`: the wait ran out, and it will be done once.",
    "Reversed.idempotency_key": "The key of the call, given or made.",
    "Reversed.replayed": "It was done before this call was made.",
    "SandboxUser.claimed": "What the registration has credited.",
    "PlatformUser.claimed": "What the registration, or this change, has credited; None if the call only reads.",
    "Webhook.secret": "The signing secret, for `verify_webhook`: shown when it is made and when it is changed.",
}
_BASES = {"StatementDay": "StatementTotal"}  # Of a whole answer it is `Result`.
_OF_ANOTHER_CALL = {"Request"}  # Its `request_id` is that of the call that it is about.
# Bodies whose fields are given by name, or several at once: a wrong name is a fault of types.
_BODIES = ("ChangedOrganization", "ChangedUser", "NewUser")
_BY_HAND = {"EventList", "PlatformEventList"}  # An event is read with what is not known of it.
_OPENING = '''"""What the service answers, and some of what it takes: made by `make_results.py` from /openapi.json.

Amounts and balances are whole points. Moments are in UTC. Fields that a newer service adds are ignored. A newer service
may also use a status that is not listed here: look at `final`. Values are compared without their `request_id`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NotRequired, TypedDict

__all__ = [{names}]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """An answer, or a row of a list.

    Attributes:
        request_id: The `X-Request-Id` of the answer in which it came, for the people who run the service. None if it
            stands inside a result: then that has it.
    """

    request_id: str | None = field(default=None, compare=False, repr=False)
'''


Fields = Mapping[str, Mapping[str, Any]]
Alternatives = list[tuple[str, Fields]]


def text() -> str:
    """Return the module."""
    classes = _classes()
    names = sorted(classes, key=lambda name: (name in _BASES, name))
    opening = _OPENING.format(names=", ".join(f'"{name}"' for name in sorted([*names, *_BODIES, "Result"])))
    return "\n\n".join([opening, *map(_body, _BODIES), *(_text(name, classes) for name in names)])


def _body(name: str) -> str:
    schema = named(f"#/components/schemas/{name}")
    required, lines = schema.get("required", ()), []
    for field, about in schema["properties"].items():
        kind = annotation(about, sent=True)
        lines.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}")
    abouts = {field: prose(about["description"]) for field, about in schema["properties"].items()}
    about = docstring(prose(schema["description"]), indent="    ", Attributes=abouts)
    return "\n".join([f"class {name}(TypedDict):\n{about}", *lines])


def _classes() -> dict[str, Alternatives]:
    """Return the fields of each class, once for each kind of answer that it stands in, with what is said of it."""
    classes: dict[str, Alternatives] = {}
    for reference, additional in _results():
        _add(reference, additional, classes)
    _add("#/components/schemas/Item", {}, classes)
    return classes


def _results() -> Iterator[tuple[str, Fields]]:
    """Yield what calls answer, or the rows of it, and the fields of `additional_data`."""
    for _, _, operation in calls():
        for data, additional in answers(operation):
            rows = rows_of(data)
            yield (data, additional) if rows is None else (rows[1], {})


def _add(reference: str, additional: Fields, classes: dict[str, Alternatives]) -> None:
    schema, name = named(reference), class_of(reference)
    own = {field: about for field, about in additional.items() if field != "version"}
    alternative = (schema["description"], {**schema.get("properties", {}), **own})
    if name in _BY_HAND or "properties" not in schema or alternative in classes.get(name, ()):
        return
    place = 0 if reference.endswith(f"/{name}") else len(classes.get(name, ()))
    classes.setdefault(name, []).insert(place, alternative)
    for inner in references([schema, own]):
        _add(inner, {}, classes)


def _text(name: str, classes: Mapping[str, Alternatives]) -> str:
    """Return a class. A field that one of its answers lacks may be missing."""
    alternatives = classes[name]
    is_result = name in {class_of(reference) for reference, _ in _results()} - _OF_ANOTHER_CALL
    base = _BASES.get(name, "Result" if is_result else "")
    inherited = classes[base][0][1] if base in classes else {}
    fields: dict[str, Any] = {field: about for _, each in alternatives for field, about in each.items()}
    more = [field.rpartition(".")[2] for field in _FIELDS if field.startswith(f"{name}.")]
    fields = {field: fields.get(field, {}) for field in [*fields, *more] if field not in inherited}
    lines, abouts = [], {}
    for field, schema in fields.items():
        python = f"{field}_" * keyword.iskeyword(field) or field
        lines.append(f"    {python}: {_FIELDS.get(f'{name}.{field}') or _type(field, schema, alternatives)}")
        about = _ABOUTS.get(f"{name}.{field}", schema.get("description"))
        abouts[python] = prose(about or named(schema["$ref"])["description"])
    about = docstring(_ABOUTS.get(name) or prose(alternatives[0][0]), indent="    ", Attributes=abouts)
    opening = f"@dataclass(frozen=True, kw_only=True, slots=True)\nclass {name}({base}):\n{about}"
    return "\n".join([opening, *lines])


def _type(field: str, schema: Mapping[str, Any], alternatives: Alternatives) -> str:
    kind = annotation(schema)
    if "None" in kind:
        return f"{kind} = None"
    if all(field in each for _, each in alternatives):
        return kind
    return f"{kind} = ()" if kind.startswith("tuple") else f"{kind} | None = None"
