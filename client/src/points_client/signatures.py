"""Signatures of webhooks: Standard Webhooks, version 1 (https://www.standardwebhooks.com)."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping

from points_client.errors import InvalidSignature
from points_client.event_results import Event, read_event

TOLERANCE_S = 300


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
        ValueError: `secret` is not a secret.
    """
    found = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp = found["webhook-id"], found["webhook-timestamp"]
        signatures = found["webhook-signature"].split()
    except KeyError as error:
        raise InvalidSignature(f"The header {error.args[0]} is missing.") from None
    content = body.encode() if isinstance(body, str) else bytes(body)
    signed = b".".join((message_id.encode(), timestamp.encode(), content))
    expected = "v1," + base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode()
    # A list, not a generator, so that every signature is compared in any case.
    if not any([hmac.compare_digest(expected.encode(), signature.encode()) for signature in signatures]):  # noqa: C419
        raise InvalidSignature("No signature is of this secret.")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE_S:
        raise InvalidSignature(f"It was not signed in the last {TOLERANCE_S // 60} minutes.")
    try:
        return read_event(json.loads(content))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidSignature("It is signed, but it is no event.") from None


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("The secret must be whsec_ and base64, as the service has shown it.") from None
