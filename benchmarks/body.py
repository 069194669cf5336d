"""Section `body`: the drain of one queued batch, beside the floor of the same size."""

import time
from collections.abc import Sequence
from functools import partial

from app.batches.accept import Acceptance, Send, accept
from app.batches.batch import final_among
from app.batches.request import IssueRequest
from app.ledger.drain import drain
from app.postgres.database import single_statement
from app.values.key_hashes import hash_key
from benchmarks import floor
from benchmarks.options import NotMeasured, Options
from benchmarks.rows import Measurement, Name, Row, named, repeated, take_turns
from benchmarks.service import Sender, Service


def measure(options: Options) -> list[Row]:
    """Measure each size: all recipients with accounts, half of them, none."""
    with floor.beside() as (service, connection):
        measures: dict[Name, Measurement] = {}
        for size in floor.SIZES:
            measures[named("floor", recipients=size)] = floor.measurement(connection, size)
            measures |= _measures(service, size)
        return take_turns(measures, rounds=options.rounds, wait_idle=service.wait_until_folded)


def _measures(service: Service, size: int) -> dict[Name, Measurement]:
    sender = service.sender()
    strangers = [f"{place}.stranger.{size}@example.com" for place in range(size)]
    accounts = service.accounts(f"body.{size}", size)
    recipients = {"all": accounts, "none": strangers}
    if size > 1:
        recipients["half"] = accounts[: size // 2] + strangers[size // 2 :]
    return {
        named("worker body", recipients=size, accounts=share): repeated(
            partial(_drain_one, sender, emails), times=floor.repeats(size)
        )
        for share, emails in recipients.items()
    }


def _drain_one(sender: Sender, emails: Sequence[str]) -> dict[str, float]:
    _, drain_s = accept_and_drain(sender, emails)
    return {"time_s": drain_s}


def accept_and_drain(sender: Sender, emails: Sequence[str]) -> tuple[float, float]:
    """Accept a batch as the front end does, drain it as the worker does; return the seconds of each."""
    request = IssueRequest(emails=emails, email_keys=emails, amount=1, atomic=False, label=None)
    send = Send(hash_key(sender.key), request, None)
    started = time.perf_counter()
    with single_statement() as connection:
        [outcome] = accept(connection, [send])
    accepted = time.perf_counter()
    drain(sender.organization_id, announce=lambda *_: None)
    ended = time.perf_counter()
    assert isinstance(outcome, Acceptance), (
        "its key is good, and it has no idempotency key that another could have taken"
    )
    with single_statement() as connection:
        if final_among(connection, [outcome.batch_id]) != [outcome.batch_id]:
            raise NotMeasured("A drain did not issue its batch.")
    return accepted - started, ended - accepted
