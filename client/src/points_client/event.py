"""Events, from the log and from webhooks, signed by Standard Webhooks, version 1 (https://www.standardwebhooks.com)."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from points_client.answers import Answer, Unlike, read
from points_client.errors import InvalidSignature

TOLERANCE_S = 300
KEY_BYTES_MIN = 24  # Standard Webhooks: 24 to 64 bytes.


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened, in the order of `sequence`: 1, 2, 3 … without gaps, of an organization and mode.

    Or of the platform: then `organization` is empty, and `data` alone says what it is about.

    A restore from a backup takes back what happened shortly before `restored_at` (None: there was none), and skips
    numbers: a gap before an event with another `restored_at` than the last one had is no lost event.

    `id` is stable. `data` is what it is about, as JSON. In `batch.issued`, `data["batch"]` is as in the list.
    `document` is the whole event as it came, including fields that this class does not know. `request_id` is that of
    the page in which it came; None if a webhook brought it.
    """

    type: str
    timestamp: datetime
    id: str
    sequence: int
    sandbox: bool
    data: Mapping[str, Any]
    organization: Mapping[str, Any]
    document: Mapping[str, Any]
    version: str | None = None
    restored_at: datetime | None = None
    request_id: str | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class EventPage:
    """Some events after the sequence `after`. The log was looked through up to `last_sequence`, also without an event.

    0 as `after`: from the oldest event that is kept.
    """

    after: int
    events: tuple[Event, ...]
    last_sequence: int
    request_id: str | None = field(default=None, compare=False)


def is_asked_for(event: Event, types: Sequence[str] | None) -> bool:
    """Tell whether an event is of one of these types, `*` stands for any part of one; None: all."""
    patterns = (re.escape(one).replace(r"\*", ".*") for one in ",".join(types or ()).split(","))
    return types is None or any(re.fullmatch(one, event.type) for one in patterns)


def read_page(after: int, answer: Answer) -> EventPage:
    """Return an answer as a page of events after `after`.

    Raises:
        Exception: it is none; `Attempts.answered` is the guard.
    """
    events = tuple(read_event(document, answer.request_id) for document in answer.data["events"])
    page = EventPage(
        after=after, events=events, last_sequence=answer.data["last_sequence"], request_id=answer.request_id
    )
    places = [after, *(one.sequence for one in page.events), page.last_sequence]
    if sorted(places) != places:
        raise Unlike("its events are not those asked for")
    return page


def read_event(document: Mapping[str, Any], request_id: str | None = None) -> Event:
    """Return a JSON object as an event, with the id of the answer in which it came.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is not an event.
    """
    organization = {} if document["organization"] is None else document["organization"]
    about = {"organization": organization, "document": document, "request_id": request_id}
    return read(Event, {**document, **about})


def verify_webhook(body: bytes | str, headers: Mapping[str, str], secret: str) -> Event:
    """Return the event of a webhook after checking its signature.

    Args:
        body: the body of the request, byte for byte as it came. JSON that was read and written again does not match.
        headers: the headers of the request, with names in upper or lower case.
        secret: the secret that was shown when the webhook was made, `whsec_…`.

    All signatures are compared: after `rotate`, the old secret still signs too for a day. The moment of the signature
    may differ by 5 minutes from the clock of this machine. A webhook is delivered at least once: use `Consumer.take`,
    or store `Event.sequence`.

    Raises:
        InvalidSignature: a header is missing, no signature is of this secret, or it is too old or in the future.
        ValueError: `secret` is not a secret: an empty or short one would let anybody sign.
    """
    key = _key(secret)
    found = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp = found["webhook-id"], found["webhook-timestamp"]
        signatures = found["webhook-signature"].split()
    except KeyError as error:
        raise InvalidSignature(f"The header {error.args[0]} is missing.") from None
    if not (message_id + timestamp).isascii():
        raise InvalidSignature("webhook-id and webhook-timestamp must be ASCII.")
    content = body.encode(errors="replace") if isinstance(body, str) else bytes(body)
    signed = b".".join((message_id.encode(), timestamp.encode(), content))
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    # A list, not a generator, so that every signature is compared in any case.
    if not any([hmac.compare_digest(expected, one.encode(errors="replace")) for one in signatures]):  # noqa: C419
        raise InvalidSignature("No signature is of this secret.")
    if not re.fullmatch(r"\d{1,12}", timestamp) or abs(time.time() - int(timestamp)) > TOLERANCE_S:
        raise InvalidSignature(f"It was not signed in the last {TOLERANCE_S // 60} minutes.")
    try:
        return read_event(json.loads(content))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise InvalidSignature("It is signed, but it is no event.") from None


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("The secret must be whsec_ and base64, as the service has shown it.") from None
    if len(key) < KEY_BYTES_MIN:
        sentence = f"The secret must have {KEY_BYTES_MIN} bytes or more, but has {len(key)}: is it set?"
        raise ValueError(sentence)
    return key
