"""Section `growth`: the drain and the lists at 0, 1 million and 10 million stored transactions.

There is one service for each, all running, so that measurements can take turns. The stored rows belong to the
measured organization.
"""

import contextlib
from collections.abc import Sequence
from functools import partial

from app.local.ports import HOST
from benchmarks.body import accept_and_drain
from benchmarks.caller import Caller
from benchmarks.in_process import in_this_process
from benchmarks.load import answered_s, get
from benchmarks.options import Options
from benchmarks.rows import Measurement, Name, Row, named, repeated, take_turns
from benchmarks.service import Sender, Service, running
from benchmarks.stored import store

MILLIONS = (0, 1, 10)
RECIPIENTS = 10_000
_BATCHES_A_STEP = 100
_DRAINS_A_MEASUREMENT = 3
_READS_A_LOOK = 20
_LISTS = ("/v1/batches?limit=100", "/v1/transactions?limit=100", "/v1/transactions?email=growth.7@example.com")


def measure(options: Options) -> list[Row]:
    """Store the rows, and measure the services in turn; `quick` leaves out the largest."""
    measures: dict[Name, Measurement] = {}
    services: list[Service] = []
    with contextlib.ExitStack() as stack:
        for millions in MILLIONS[:-1] if options.quick else MILLIONS:
            service = stack.enter_context(running())
            services.append(service)
            emails = service.accounts("growth", RECIPIENTS)
            sender = service.sender()
            _store_millions(service, sender, millions)
            measures[named("worker body", millions=millions)] = partial(_body, service, sender, emails)
            for path in _LISTS:
                measures[named(f"GET {path}", millions=millions)] = repeated(
                    partial(_read, service, sender, path), times=_READS_A_LOOK
                )
        return take_turns(measures, rounds=options.rounds, wait_idle=partial(_wait_until_folded, services))


def _wait_until_folded(services: Sequence[Service]) -> None:
    for service in services:
        service.wait_until_folded()


def _store_millions(service: Service, sender: Sender, millions: int) -> None:
    """Store rows, vacuum, and write the pages to disk, as time would."""
    with service.connect() as connection:
        for _ in range(millions * 1_000_000 // (_BATCHES_A_STEP * RECIPIENTS)):
            store(connection, sender.organization_id, batches=_BATCHES_A_STEP)
        connection.execute("VACUUM ANALYZE")
    service.checkpoint()


def _body(service: Service, sender: Sender, emails: list[str]) -> dict[str, float]:
    with in_this_process(service):
        measurement = repeated(partial(_drain, sender, emails), times=_DRAINS_A_MEASUREMENT)
        return dict(measurement())


def _drain(sender: Sender, emails: list[str]) -> dict[str, float]:
    accept_s, drain_s = accept_and_drain(sender, emails)
    return {"accept_s": accept_s, "time_s": drain_s}


def _read(service: Service, sender: Sender, path: str) -> dict[str, float]:
    request = get(path, key=sender.key)
    with contextlib.closing(Caller(HOST, service.port, [request], 0)) as caller:
        return {"time_s": answered_s(caller, request, expect=200)}
