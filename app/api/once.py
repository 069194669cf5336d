"""A call that makes something makes it once for an `Idempotency-Key`: a repetition gets the answer of the first."""

from collections.abc import Callable
from contextlib import suppress

from flask import Response, request
from sqlalchemy import Connection

from app import kept_answers
from app.api.requests.send_headers import idempotency_key
from app.api_keys import Caller
from app.errors import PointsError
from app.kept_answers import KeptAnswer
from app.platform.keys import PlatformCaller
from app.postgres.database import transaction


def once(
    who: Caller | PlatformCaller, body: object, respond: Callable[[Connection], Response], *, written: bytes = b""
) -> Response:
    """Answer by `respond`, in a transaction that also keeps the answer; or with the one that is kept.

    Args:
        body: what was read of the body.
        written: its bytes, if they are to find the answer when the body is at fault by then.

    Raises:
        InvalidRequest: the key is not acceptable.
        PointsError: as `kept_answers.find`, or what `respond` raises; then nothing is kept.
    """
    key = idempotency_key()
    with transaction(by=who.author if isinstance(who, PlatformCaller) else None) as connection:
        if key is None:
            return respond(connection)
        name = _name(who, key)
        kept = kept_answers.find(connection, name, body)
        if kept is not None:
            return _again(kept)
        response = respond(connection)
        answer = KeptAnswer(response.status_code, response.headers.get("Location"), response.get_data(as_text=True))
        kept_answers.keep(connection, name, body, answer)
        if written:
            kept_answers.keep(connection, kept_answers.name_of(name, written), None, answer)
        return response


def answered_before(who: Caller | PlatformCaller, written: bytes) -> Response | None:
    """Return the answer to a body with these bytes, which was good then and is at fault by now: its end has passed."""
    with suppress(PointsError):
        if (key := idempotency_key()) is not None:
            with transaction() as connection:
                kept = kept_answers.find(connection, kept_answers.name_of(_name(who, key), written), None)
            return None if kept is None else _again(kept)
    return None


def once_in_steps(who: Caller | PlatformCaller, body: object, respond: Callable[[], Response]) -> Response:
    """Do the same with what opens transactions of its own, and has the effect of once also if two do it at once.

    What the body says is kept before the first of them, so that no other body begins with the same key.

    Raises:
        InvalidRequest, PointsError: as `once`.
    """
    key = idempotency_key()
    if key is None:
        return respond()
    name = _name(who, key)
    with transaction() as connection:
        kept, begun = kept_answers.find(connection, name, body), kept_answers.name_of(name, "begun")
        if kept is None and kept_answers.find(connection, begun, body) is None:
            kept_answers.keep(connection, begun, body, KeptAnswer(0, None, ""))
    if kept is not None:
        return _again(kept)
    response = respond()
    return once(who, body, lambda _: response)


def _name(who: Caller | PlatformCaller, key: str) -> bytes:
    scope = None if isinstance(who, PlatformCaller) else who.scope
    return kept_answers.name_of(scope, request.endpoint, request.view_args, key)


def _again(kept: KeptAnswer) -> Response:
    response = Response(kept.document, status=kept.status, content_type="application/json")
    response.headers["Idempotency-Replayed"] = "true"
    if kept.location is not None:
        response.headers["Location"] = kept.location
    return response
