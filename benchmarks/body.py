"""Section `body`: the worker's body, which drains one queued batch, beside the floor of the same size."""

import time
from collections.abc import Sequence
from functools import partial

from app import batches
from app.batches import IssueRequest
from app.database import transaction
from app.ledger.drain import drain
from benchmarks import floor
from benchmarks.options import Options
from benchmarks.rows import Look, Named, Row, named, take_turns
from benchmarks.service import Service, in_this_process, running


def measure(options: Options) -> list[Row]:
    """Measure each size for recipients who all have accounts, half of them, and none of them."""
    with running() as service, in_this_process(service), service.connect() as connection:
        floor.prepare(connection)
        looks: dict[Named, Look] = {}
        for size in floor.SIZES:
            looks[named("floor", recipients=size)] = floor.look(connection, size)
            looks |= _looks(service, size)
        return take_turns(looks, rounds=options.rounds)


def _looks(service: Service, size: int) -> dict[Named, Look]:
    organization_id = service.sender().organization_id
    strangers = [f"{place}.stranger.{size}@example.com" for place in range(size)]
    accounts = service.accounts(f"body.{size}", size)
    recipients = {"all": accounts, "none": strangers}
    if size > 1:
        recipients["half"] = accounts[: size // 2] + strangers[size // 2 :]
    return {
        named("worker body", recipients=size, accounts=share): partial(drain_one, organization_id, emails)
        for share, emails in recipients.items()
    }


def drain_one(organization_id: int, emails: Sequence[str]) -> dict[str, float]:
    """Accept a batch, and then measure its drain in this process, as the worker's task runs it."""
    accept_one(organization_id, emails)
    started = time.perf_counter()
    drain(organization_id, announce=lambda _: None)
    return {"time_s": time.perf_counter() - started}


def accept_one(organization_id: int, emails: Sequence[str]) -> None:
    """Write a queued batch, as the front end does."""
    request = IssueRequest(emails=emails, email_keys=emails, amount=1, atomic=False, label=None)
    with transaction() as connection:
        batches.accept(connection, organization_id, request, sandbox=False, idempotency_key=None)
