"""The service's description, in words of Python: the types of its fields, and its prose as docstrings."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from app.api.openapi.description import document
from app.settings import Settings

Schema = Mapping[str, Any]
# The classes whose names are not those of their schemas.
_CLASS_OF = {
    "ListedBatch": "Batch",
    "ListedReversal": "Reversal",
    "Verdict": "Verified",
    "ReverseVerdict": "Recoverable",
    "SendResult": "Sent",
    "AcceptedBatch": "Sent",
    "ReverseResult": "Reversed",
    "QueuedReversal": "Reversed",
    "NewSecret": "Webhook",
    "CreatedKey": "NewKey",
    "CreatedMember": "NewMember",
}
_PLAIN = {"integer": "int", "string": "str", "boolean": "bool", "null": "None"}
_OF_HTTP = re.compile("ISO 8601|.*`next_cursor`|A cursor |The answer is 201")
_wrap = partial(textwrap.wrap, width=117, break_long_words=False, break_on_hyphens=False)
_MOMENTS = {"date-time": "datetime", "date": "date"}


@cache
def description() -> Schema:
    """Return /openapi.json, as a service with the settings' defaults answers it."""
    return document(Settings.model_construct())


def calls() -> Iterator[tuple[str, str, Schema]]:
    """Yield the calls that take a key, each with its method and its path."""
    for path, operations in description()["paths"].items():
        for method, operation in operations.items() if path.startswith("/v1/") else ():
            yield method.upper(), path, operation


def named(reference: str) -> Any:
    """Return the part of the description that `#/components/…` refers to."""
    part: Any = description()
    for name in reference.removeprefix("#/").split("/"):
        part = part[name]
    return part


def class_of(reference: str) -> str:
    """Return the name of the class for a schema."""
    name = reference.rpartition("/")[2]
    return _CLASS_OF.get(name, name)


def references(schema: Any) -> Iterator[str]:
    """Yield the schemas that a schema refers to."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"]
        schema = [*schema.values()]
    for part in schema if isinstance(schema, list) else ():
        yield from references(part)


def answers(operation: Schema) -> list[tuple[str, Schema]]:
    """Return the successes of a call: the reference to the schema of `data`, and the fields of `additional_data`."""
    successes = []
    for status, answer in operation["responses"].items():
        if status.startswith("2") and "content" in answer:
            envelope = named(answer["content"]["application/json"]["schema"]["$ref"])["properties"]
            successes.append((envelope["data"]["$ref"], named(envelope["additional_data"]["$ref"])["properties"]))
    return successes


def body_of(operation: Schema) -> tuple[dict[str, Schema], set[str]]:
    """Return the fields of a call's body, and those that it must have. Alternatives are taken as one."""
    if "requestBody" not in operation:
        return {}, set()
    schema = named(operation["requestBody"]["content"]["application/json"]["schema"]["$ref"])
    bodies = [named(body["$ref"]) for body in schema["oneOf"]] if "oneOf" in schema else [schema]
    fields = [
        field for body in bodies for field in body["properties"].items() if not isinstance(field[1].get("type"), list)
    ]
    return dict(fields), set.intersection(*({*body.get("required", ())} for body in bodies))


def rows_of(reference: str) -> tuple[str, str] | None:
    """Return the name of the rows of a list and the reference to their schema; None for what is no list."""
    name, *more = named(reference)["properties"].keys() - {"next_cursor"}
    rows = named(reference)["properties"][name].get("items", {})
    return None if more or "$ref" not in rows else (name, rows["$ref"])


def is_page(reference: str) -> bool:
    return "next_cursor" in named(reference)["properties"]


def annotation(schema: Schema, *, sent: bool = False) -> str:
    """Return the type of a value. What is sent may also be a moment as text, and any sequence."""
    if "anyOf" in schema:
        return " | ".join(annotation(kind, sent=sent) for kind in schema["anyOf"])
    if "$ref" in schema:
        is_class = not sent and "properties" in named(schema["$ref"])
        return class_of(schema["$ref"]) if is_class else annotation(named(schema["$ref"]), sent=sent)
    if schema.get("type") == "array":
        each = annotation(schema["items"], sent=sent)
        return f"Sequence[{each}]" if sent else f"tuple[{each}, ...]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"Mapping[str, {annotation(values, sent=True) if isinstance(values, dict) and values else 'Any'}]"
    moment = _MOMENTS.get(schema.get("format", ""))
    return _PLAIN.get(schema.get("type", ""), "Any") if moment is None else moment + " | str" * sent


def prose(text: str) -> str:
    """Return a text without what is said of JSON and of pages alone."""
    sentences = re.split(r"(?<=\.)\s+", " ".join(text.split()))
    text = " ".join(sentence for sentence in sentences if not _OF_HTTP.match(sentence))
    text = text.replace(", ISO 8601 in UTC, six decimals", "").replace("`Idempotency-Key`", "`idempotency_key`")
    return re.sub(r"\bnull\b", "None", re.sub(r"\bNull\b", "None", text))


def docstring(*paragraphs: str, indent: str, **sections: Mapping[str, str]) -> str:
    """Return a docstring: paragraphs, and sections such as `Args` with their entries."""
    lines = ["\n".join(_wrapped(paragraph, indent)) for paragraph in paragraphs if paragraph]
    for name, entries in sections.items():
        if entries:
            each = [line for entry in entries.items() for line in _wrapped(": ".join(entry), f"{indent}    ", 4)]
            lines.append("\n".join([f"{indent}{name}:", *each]))
    end = f"\n{indent}" if len(lines) > 1 or "\n" in lines[0] else ""
    text = "\n\n".join(lines).strip()
    return f'{indent}"""{text}{end}"""\n'


def _wrapped(text: str, indent: str, hanging: int = 0) -> list[str]:
    return _wrap(text, initial_indent=indent, subsequent_indent=indent + " " * hanging)
