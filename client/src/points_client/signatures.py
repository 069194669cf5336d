"""Signatures of webhooks: Standard Webhooks, version 1 (https://www.standardwebhooks.com)."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping

from points_client.errors import InvalidSignature
from points_client.event import Event, read_event

TOLERANCE_S = 300
KEY_BYTES_MIN = 24  # Standard Webhooks: 24 to 64 bytes.


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
