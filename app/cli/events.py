"""`points events`: follow the event log over HTTP, and forward each event to a program on this machine."""

import base64
import os
import time
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import click
import httpx
import orjson
from standardwebhooks import Webhook

from app.cli.options import calling_options, data_dir_option, json_option, patience_option
from app.cli.service import Service, running_url, say
from app.errors import Refused

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_TRY_AGAIN_AFTER_S = 2.0
_FORWARD_TIMEOUT_S = 15.0


@click.group()
def events() -> None:
    """Follow what happens."""


@events.command()
@calling_options
@patience_option
@click.option("--after", type=click.IntRange(min=0), help="Begin after this sequence [default: with what comes now].")
@click.option("--types", help="Only these types, such as batch.*,transaction.claimed.")
@click.option("--forward-to", metavar="URL", help="Post each event, signed, to a program on this machine.")
@click.option("--secret", envvar="POINTS_WEBHOOK_SECRET", help="Sign with this secret [default: a new one, shown].")
@json_option
@data_dir_option
def tail(
    *,
    key: str,
    url: str | None,
    patience: float,
    after: int | None,
    types: str | None,
    forward_to: str | None,
    secret: str | None,
    as_json: bool,
    data_dir: str,
) -> None:
    """Follow the event log until Ctrl-C: a line for each event, or with --json its JSON.

    With --forward-to, each event is posted until the program answers 2xx; then the next one follows.
    """
    receiver = None if forward_to is None else _Receiver(forward_to, secret)
    service = Service(url or running_url(data_dir), key, patience_s=patience)
    with closing(service):
        try:
            start = service.answer(lambda points: points.events.last_sequence()) if after is None else after
            wanted = None if types is None else [types]
            followed = service.answer(lambda points: points.events.follow(after=start, types=wanted))
            while True:
                event = service.answer(lambda _: next(followed)).document
                click.echo(orjson.dumps(event) if as_json else _line(event))
                if receiver is not None:
                    receiver.hand_over(event)
        except KeyboardInterrupt:
            return


def _line(event: Mapping[str, Any]) -> str:
    """Describe an event in one line: its sequence, moment, type and subject."""
    return f"{event['sequence']:>8}  {event['timestamp']}  {event['type']:<22}  {_subject(event['data'])}".rstrip()


def _subject(data: Mapping[str, Any]) -> str:
    for noun, name in (("batch", "batch_id"), ("reversal", "reversal_id"), ("key", "id"), ("webhook", "id")):
        if noun in data:
            return f"{noun} {data[noun][name]}"
    if "user" in data:
        return f"user {data['user']['id']}, {data['count']} transactions"
    return f"balance {data['organization']['balance']}" if "organization" in data else ""


def _is_of_this_machine(url: str) -> bool:
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    has_port = parts.port is None or 0 < parts.port < 65_536
    return parts.scheme in ("http", "https") and parts.host in _LOOPBACK and has_port


class _Receiver:
    """A developer's program on this machine, which gets events as a webhook does."""

    def __init__(self, url: str, secret: str | None) -> None:
        if not _is_of_this_machine(url):
            raise Refused("--forward-to takes an address of this machine, such as http://127.0.0.1:9000/hook.")
        if secret is None:
            secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
            say(f"Signed with {secret}")
        try:
            self._webhook = Webhook(secret)
        except (ValueError, RuntimeError):
            raise Refused("The secret must be whsec_ and base64.") from None
        self._url = url
        self._client = httpx.Client(timeout=_FORWARD_TIMEOUT_S, trust_env=False)

    def hand_over(self, event: Mapping[str, Any]) -> None:
        """Post an event until it is taken."""
        body = orjson.dumps(event)  # The same bytes as the service's: it uses the same library.
        while True:
            now = datetime.now(UTC)
            headers = {
                "Content-Type": "application/json",
                "webhook-id": event["id"],
                "webhook-timestamp": str(int(now.timestamp())),
                "webhook-signature": self._webhook.sign(event["id"], now, body.decode()),
            }
            try:
                status = self._client.post(self._url, content=body, headers=headers).status_code
            except httpx.HTTPError as error:
                trouble = type(error).__name__
            else:
                if 200 <= status < 300:
                    return
                trouble = f"it answered {status}"
            say(f"Event {event['sequence']} was not taken ({trouble}); trying again in {_TRY_AGAIN_AFTER_S:.0f} s")
            time.sleep(_TRY_AGAIN_AFTER_S)
