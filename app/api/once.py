"""A call that makes something makes it once for an `Idempotency-Key`: a repetition gets the answer of the first."""

from collections.abc import Callable

from flask import Response, request
from sqlalchemy import Connection

from app import kept_answers
from app.api.requests.send_headers import idempotency_key
from app.api_keys import Caller
from app.kept_answers import KeptAnswer
from app.platform.keys import PlatformCaller
from app.postgres.database import transaction


def once(who: Caller | PlatformCaller, body: object, respond: Callable[[Connection], Response]) -> Response:
    """Answer by `respond`, in a transaction that also keeps the answer; or with the one that is kept.

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
        return response


def once_in_steps(who: Caller | PlatformCaller, body: object, respond: Callable[[], Response]) -> Response:
    """Do the same with what opens transactions of its own, and has the effect of once also if two do it at once.

    Raises:
        InvalidRequest, PointsError: as `once`.
    """
    key = idempotency_key()
    if key is not None:
        with transaction() as connection:
            kept = kept_answers.find(connection, _name(who, key), body)
        if kept is not None:
            return _again(kept)
    response = respond()
    return response if key is None else once(who, body, lambda _: response)


def _name(who: Caller | PlatformCaller, key: str) -> bytes:
    scope = None if isinstance(who, PlatformCaller) else who.scope
    return kept_answers.name_of(scope, request.endpoint, request.view_args, key)


def _again(kept: KeptAnswer) -> Response:
    response = Response(kept.document, status=kept.status, content_type="application/json")
    response.headers["Idempotency-Replayed"] = "true"
    if kept.location is not None:
        response.headers["Location"] = kept.location
    return response
