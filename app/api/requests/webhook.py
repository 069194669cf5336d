"""The bodies of the webhook calls: parsed, with every fault in one answer."""

from typing import Any

from app.api.requests.fields import text_fault
from app.api.requests.json_object import is_integer, is_missing, kind, parse_object
from app.events.types import PATTERNS
from app.settings import INT64_MAX
from app.values.validation_errors import FaultsFound, unknown_name
from app.webhooks.receivers import ReceiverRefused, parse, resolve

FIELDS = ("url", "types", "description")
DESCRIPTION_LENGTH_MAX = 255
TYPES_MAX = 50
# Time limit for resolving the name in a URL.
_RESOLVED_WITHIN_S = 5.0


def parse_webhook(body: bytes, *, is_new: bool) -> dict[str, Any]:
    """Read the body that makes or changes a webhook: return the columns to set, all of them for a new one.

    Raises:
        InvalidRequest: with every fault, each under its field; a bad type under its place, `types.1`.
    """
    fields, refusal = parse_object(body)
    faults = FaultsFound()
    faults.add_unknown("field", fields, FIELDS, whole="body")
    columns: dict[str, Any] = {}
    if is_new or "url" in fields:
        columns["url"] = _url(fields.get("url"), faults)
    if is_new or "types" in fields:
        columns["types"] = _types(fields.get("types"), faults)
    if is_new or "description" in fields:
        columns["description"] = _description(fields.get("description"), faults)
    if not columns and faults.is_empty:
        faults.add("body", f"The body must have at least one of {', '.join(FIELDS)}.")
    faults.raise_if_any()
    if refusal is not None:
        raise refusal
    return columns


def _url(value: object, faults: FaultsFound) -> str:
    if is_missing(value):
        faults.add("url", "The url field is required.")
    elif not isinstance(value, str):
        faults.add("url", f"The url must be a string, but is {kind(value)}.")
    else:
        try:
            resolve(parse(value), timeout_s=_RESOLVED_WITHIN_S)
        except ReceiverRefused as refused:
            faults.add("url", f"The url {refused}")
        return value
    return ""


def _types(value: object, faults: FaultsFound) -> list[str]:
    if value is None:
        return ["*"]
    if not isinstance(value, list) or not 1 <= len(value) <= TYPES_MAX:
        seen = f"an array of {len(value)}" if isinstance(value, list) else kind(value)
        faults.add("types", f"The types must be an array of 1 to {TYPES_MAX} types of events, but are {seen}.")
        return []
    for place, one in enumerate(value):
        if not isinstance(one, str):
            faults.add_entry(f"types.{place}", f"The entry must be a string, but is {kind(one)}.")
        elif one not in PATTERNS:
            faults.add_entry(f"types.{place}", unknown_name("type", one, PATTERNS, taker="a webhook"))
        elif one in value[:place]:
            faults.add_entry(f"types.{place}", f"The entry is the same type as types.{value.index(one)}.")
    return value


def _description(value: object, faults: FaultsFound) -> str | None:
    if is_missing(value):
        return None
    if (sentence := text_fault("description", value, length_max=DESCRIPTION_LENGTH_MAX)) is not None:
        faults.add("description", sentence)
        return None
    assert isinstance(value, str)
    return value


def parse_replay(body: bytes) -> int:
    """Read the body of a replay: the sequence of the first event to send again.

    Raises:
        InvalidRequest: with every fault.
    """
    fields, refusal = parse_object(body)
    faults = FaultsFound()
    faults.add_unknown("field", fields, ("from_sequence",), whole="body")
    value = fields.get("from_sequence")
    if is_missing(value):
        faults.add("from_sequence", "The from_sequence field is required.")
    elif not is_integer(value):
        faults.add("from_sequence", f"The from_sequence must be an integer, but is {kind(value)}.")
    elif isinstance(value, int) and not 1 <= value <= INT64_MAX:
        faults.add("from_sequence", "The from_sequence must be the sequence of an event, an integer of at least 1.")
    faults.raise_if_any()
    if refusal is not None:
        raise refusal
    assert isinstance(value, int), "it is sent, and without a fault"
    return value
