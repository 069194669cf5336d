"""Section `send`: a whole send, from HTTP request to 201, beside the floor, and its parts.

The parts are measured one by one right after the whole, in this process or over HTTP. The remaining time is the
queue: the message to a worker, the hint back, and waking up.
"""

import time
from collections.abc import Callable
from functools import partial

from app.api.requests.body import read_object
from app.batches.batch import batches
from app.batches.request import read_issue_request
from app.batches.transaction import transactions_of
from app.local.ports import HOST
from app.postgres.database import transaction
from app.scope import Scope
from app.settings import settings
from benchmarks import floor
from benchmarks.body import accept_and_drain
from benchmarks.caller import Caller
from benchmarks.load import answered_s, get, post_items, post_send
from benchmarks.options import Options
from benchmarks.rows import Measurement, Name, Row, named, repeated, take_turns
from benchmarks.service import Service


def measure(options: Options) -> list[Row]:
    """Measure each size; all recipients have accounts."""
    with floor.beside() as (service, connection):
        measures: dict[Name, Measurement] = {}
        for size in floor.SIZES:
            measures[named("floor", recipients=size)] = floor.measurement(connection, size)
            send = _Send(service, connection, size)
            measures[named("whole send", recipients=size)] = repeated(send.measure, times=floor.repeats(size))
            measures[named("send of items", recipients=size)] = repeated(send.measure_items, times=floor.repeats(size))
        return take_turns(measures, rounds=options.rounds, wait_idle=service.wait_until_folded)


class _Send:
    """One caller's sends of one size; all recipients have accounts."""

    def __init__(self, service: Service, connection: floor.Connection, size: int) -> None:
        self._port = service.port
        self._connection = connection
        self._sender = service.sender()
        # For the parts: a worker may still be looking for more batches of the one that has just sent.
        self._other_sender = service.sender()
        self._emails = service.accounts(f"send.{size}", size)
        self._request = post_send(self._sender.key, self._emails)
        self._request_of_items = post_items(self._sender.key, self._emails)
        self._body = self._request.partition(b"\r\n\r\n")[2]

    def measure_items(self) -> dict[str, float]:
        """Measure a send of the same addresses as items, with their own amounts and references."""
        caller = self._new_caller()
        whole = answered_s(caller, self._request_of_items, expect=201)
        caller.close()
        return {"time_s": whole}

    def measure(self) -> dict[str, float]:
        """Measure the whole, then each part."""
        caller = self._new_caller()
        key, organization_id = self._sender.key, self._sender.organization_id
        whole = answered_s(caller, self._request, expect=201)
        batch_id = self._newest_batch_id()
        http = answered_s(caller, get("/v1/organization", key=key), expect=200)
        shown = answered_s(caller, get(f"/v1/batches/{batch_id}", key=key), expect=200)
        caller.close()
        parse = _seconds(partial(read_object, self._body, partial(read_issue_request, limits=settings())))
        accept, write = accept_and_drain(self._other_sender, self._emails)
        read = _seconds(partial(_read, organization_id, batch_id))
        parts = {"http and key_s": http, "parse_s": parse, "accept_s": accept, "write_s": write, "read_s": read}
        parts["render_s"] = shown - http - read
        return {"time_s": whole, **parts, "queue_s": whole - sum(parts.values())}

    def _new_caller(self) -> Caller:
        """Connect anew: the server would close a kept connection between two rounds."""
        caller = Caller(HOST, self._port, [get("/healthz")], 0)
        caller.exchange(get("/healthz"))
        return caller

    def _newest_batch_id(self) -> int:
        row = self._connection.execute("SELECT max(id) FROM batches").fetchone()
        assert row is not None, "an aggregate always gives a row"
        return int(str(row[0]))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _read(organization_id: int, batch_id: int) -> None:
    with transaction() as connection:
        batches.get(connection, batch_id, Scope(organization_id, sandbox=False))
        transactions_of(connection, batch_id, organization_id=organization_id)
