"""Makes `points_client/results.py`: a dataclass for each answer of the service, from its description."""

import keyword
from collections.abc import Mapping
from typing import Any

from client.described import annotation, answers, calls, class_of, docstring, list_of, named, prose, references

# What the description does not say of a field: that older services lack it, that `repr` hides it, that we add it.
_FIELDS = {
    "Counts.reversed": "int = 0",
    "Delivery.created_at": "datetime | None = None",
    "Delivery.ms": "int | None = None",
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
    "SandboxUser.claimed": "What this call has credited.",
    "PlatformUser.claimed": "What this call has credited; None if it only reads.",
    "Webhook.secret": "The signing secret, for `verify_webhook`: shown when it is made and when it is changed.",
}
_BASES = {"StatementDay": "StatementTotal"}
_BY_HAND = {"EventList", "PlatformEventList"}  # An event is read with what is not known of it.
_OPENING = '''"""What the service answers, and the items of a send: made by `make_results.py` from /openapi.json.

Amounts and balances are whole points. Moments are in UTC. Fields that a newer service adds are ignored. A newer service
may also use a status that is not listed here: look at `final`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

__all__ = [{names}]
'''


Fields = Mapping[str, Mapping[str, Any]]
Alternatives = list[tuple[str, Fields]]


def text() -> str:
    """Return the module."""
    classes = _classes()
    names = sorted(classes, key=lambda name: (name in _BASES, name))
    opening = _OPENING.format(names=", ".join(f'"{name}"' for name in sorted(names)))
    return "\n\n".join([opening, *(_text(name, classes) for name in names)])


def _classes() -> dict[str, Alternatives]:
    """Return the fields of each class, once for each kind of answer that it stands in, with what is said of it."""
    classes: dict[str, Alternatives] = {}
    for _, _, operation in calls():
        for data, additional in answers(operation):
            page = list_of(data)
            _add(page[1] if page else data, {} if page else additional, classes)
    _add("#/components/schemas/Item", {}, classes)
    return classes


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
    base = _BASES.get(name)
    inherited = classes[base][0][1] if base else {}
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
    opening = f"@dataclass(frozen=True, kw_only=True, slots=True)\nclass {name}({base or ''}):\n{about}"
    return "\n".join([opening, *lines])


def _type(field: str, schema: Mapping[str, Any], alternatives: Alternatives) -> str:
    kind = annotation(schema)
    if "None" in kind:
        return f"{kind} = None"
    if all(field in each for _, each in alternatives):
        return kind
    return f"{kind} = ()" if kind.startswith("tuple") else f"{kind} | None = None"
