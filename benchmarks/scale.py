"""Section `scale`: what the service does at 1, 10 and 100 million stored transactions of 2 million users.

One database grows from size to size; at each, sends, lists, claims, reversals, the audit, vacuum and the disk are
measured. 100 million rows take hours and 40 GB, so it runs only when it is named; `--rows` ends it earlier. The sizes
are measured at different hours: the floor beside each tells how fast the machine was.
"""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import click

from app.local.ports import HOST
from app.postgres import partitions
from app.postgres.database import transaction
from benchmarks import disk, filling, floor, tables
from benchmarks.caller import Caller
from benchmarks.filling import Connection, Population
from benchmarks.load import answered_s, get, post, post_send
from benchmarks.options import NotMeasured, Options
from benchmarks.rows import Measurement, Name, Row, find, named, repeated, take_turns
from benchmarks.service import Service
from benchmarks.usage import Peak

SIZES = (1_000_000, 10_000_000, 100_000_000)
# A step has batches with references, at the same places each.
_STEP_MAX, _STEP_MULTIPLE = SIZES[0], filling.REFERENCES_EVERY * filling.RECIPIENTS
_ORGANIZATIONS = 4
# Of fewer rows than a step, twice as many users as rows.
_USERS_MAX, _USERS_A_STRANGER = 2_000_000, 40
_LARGE = 10_000
_CALLS_A_LOOK = 20
# An audit of more rows is made once.
_AUDITED_OFTEN_TO = 1_000_000
# Prime to the number of users: so each call is for another one, far from the last.
_STRIDE = 787_427
_QUIET_IN_S = 900.0


def measure(options: Options) -> list[Row]:
    """Fill up to each size in turn, and measure there."""
    sizes, step = sizes_up_to(options.rows), min(options.rows, _STEP_MAX)
    if options.rounds > (rounds_max := _rounds_max(step, len(sizes))):
        raise NotMeasured(f"It has addresses and batches for --rounds {rounds_max} at most.")
    disk.require_room(sizes[-1])
    with floor.beside() as (service, connection):
        users = min(_USERS_MAX, 2 * step)
        click.echo(f"Registering {users:,} users …")
        population = filling.register(connection, users=users, strangers=users // _USERS_A_STRANGER)
        books = _Books(service, connection, population, step)
        rows: list[Row] = []
        for size in sizes:
            rates = books.fill_to(size)
            rows.append(Row(what="filling", of={"rows": size}, figure="rows_per_s", values=rates))
            click.echo(f"Measuring at {size:,} rows …")
            measured = books.measured(options.rounds)
            tables.of_section(f"scale, {size:,} rows", measured).print()  # The next size may take half an hour.
            rows += measured
        return beside_first(rows, first=sizes[0])


def sizes_up_to(rows: int) -> list[int]:
    """Return the sizes to measure at; the last is `rows`.

    Raises:
        NotMeasured: it cannot be filled up to `rows`.
    """
    if rows < _STEP_MULTIPLE or rows % min(rows, _STEP_MAX) or rows % _STEP_MULTIPLE:
        raise NotMeasured(
            f"--rows is a multiple of {_STEP_MULTIPLE:,} up to {_STEP_MAX:,}, or of {_STEP_MAX:,}, not {rows:,}."
        )
    return [*(size for size in SIZES if size < rows), rows]


def _rounds_max(step: int, sizes: int) -> int:
    """Each round claims what one address holds since the first step, and takes back a batch of the first step.

    So does the round that warms up, and each size needs its own.
    """
    old_batches = step // filling.RECIPIENTS // _ORGANIZATIONS
    return min(filling.HOLDERS, old_batches) // sizes - 1


def beside_first(rows: list[Row], *, first: int) -> list[Row]:
    """Add to each figure that may not grow how many times it is that of the first size."""
    seen = []
    for row in rows:
        seen.append(row)
        of_first = find(rows, row.what, row.figure, **{**row.of, "rows": first})
        if row.figure == "time_s" and of_first is not None:
            times = [value / of_first.median for value in row.values]
            seen.append(replace(row, figure=f"× {first:,} rows", values=times))
    return seen


class _Books:
    """The books as they grow, and what is measured on them. The first of the organizations sends."""

    def __init__(self, service: Service, connection: Connection, population: Population, step: int) -> None:
        self._service = service
        self._connection = connection
        self._population = population
        self._step = step
        self._senders = [service.sender() for _ in range(_ORGANIZATIONS)]
        self._key = self._senders[0].key
        self._platform_key = service.platform_key("users:register")
        self._steps = 0
        self._users = (filling.email_of_user(n * _STRIDE % population.users) for n in itertools.count())
        self._holders = (filling.email_of_holder(0, place) for place in range(filling.HOLDERS))
        self._references = self._all_references()
        self._old_batches: Iterator[int] = iter(())

    def fill_to(self, size: int) -> list[float]:
        """Fill up to a size; return the rows a second of each step. At the end all is vacuumed and on disk."""
        organizations, rates = [sender.organization_id for sender in self._senders], []
        while self._steps * self._step < size:
            began = time.perf_counter()
            partitions.make()  # It may fill faster than the workers make them.
            batches = self._step // filling.RECIPIENTS
            filling.fill(self._connection, organizations, self._population, step=self._steps, batches=batches)
            self._steps += 1
            rates.append(self._step / (time.perf_counter() - began))
            click.echo(f"{self._steps * self._step:,} rows, {rates[-1]:,.0f} a second")
            if self._steps == 1:
                self._old_batches = self._batches_of_the_sender()
        self._until_quiet()
        self._connection.execute("VACUUM ANALYZE")
        self._service.checkpoint()
        return rates

    def measured(self, rounds: int) -> list[Row]:
        """Measure everything at the present size: the disk first, as the filling left it."""
        size = self._steps * self._step
        seen = [
            Row(what=f"disk, {name}", of={"rows": size}, figure="row_bytes", values=[value])
            for name, value in disk.bytes_by_relation(self._connection, size).items()
        ]
        seen += take_turns(self._calls(size), rounds=rounds, wait_idle=self._service.wait_until_folded)
        audits = rounds if size <= _AUDITED_OFTEN_TO else 1
        values = [self._audit() for _ in range(audits)]
        seen += [
            Row(what="audit", of={"rows": size}, figure=figure, values=[value[figure] for value in values])
            for figure in values[0]
        ]
        began = time.perf_counter()
        self._connection.execute("VACUUM")
        vacuum_s = time.perf_counter() - began
        return [*seen, Row(what="vacuum after it all", of={"rows": size}, figure="time_s", values=[vacuum_s])]

    def _calls(self, size: int) -> dict[Name, Measurement]:
        calls = {
            "send of 1": repeated(self._send_one, times=_CALLS_A_LOOK),
            f"send of {_LARGE:,}": self._send_large,
            "list of an address": repeated(self._list_address, times=_CALLS_A_LOOK),
            "list of a reference": repeated(self._list_reference, times=_CALLS_A_LOOK),
            "list of what is held": repeated(partial(self._list_state, "held"), times=_CALLS_A_LOOK),
            "list of what is reversed": repeated(partial(self._list_state, "reversed"), times=_CALLS_A_LOOK),
            f"claim of {self._step // filling.RECIPIENTS:,} held": self._claim,
            "reversal of an old batch": self._reverse,
            f"floor, COPY of {_LARGE:,}": floor.measurement(self._connection, _LARGE),
        }
        return {named(what, rows=size): measurement for what, measurement in calls.items()}

    def _send_one(self) -> dict[str, float]:
        return self._call(post_send(self._key, [next(self._users)]), expect=201)

    def _send_large(self) -> dict[str, float]:
        return self._call(post_send(self._key, list(itertools.islice(self._users, _LARGE))), expect=201)

    def _list_address(self) -> dict[str, float]:
        return self._list(f"email={next(self._users)}")

    def _list_reference(self) -> dict[str, float]:
        return self._list(f"reference={filling.reference_of(next(self._references))}")

    def _list_state(self, state: str) -> dict[str, float]:
        return self._list(f"state={state}")

    def _list(self, query: str) -> dict[str, float]:
        return self._call(get(f"/v1/transactions?limit=100&{query}", key=self._key), expect=200)

    def _claim(self) -> dict[str, float]:
        user = {"email": next(self._holders), "first_name": "First", "last_name": "Last"}
        return self._call(post(self._platform_key, "/v1/platform/users", user), expect=201)

    def _reverse(self) -> dict[str, float]:
        reversal = {"batch": next(self._old_batches), "reason": "Bench"}
        return self._call(post(self._key, "/v1/points/reverse", reversal), expect=201)

    def _call(self, request: bytes, *, expect: int) -> dict[str, float]:
        caller = Caller(HOST, self._service.port, [request], 0)
        try:
            return {"time_s": answered_s(caller, request, expect=expect)}
        finally:
            caller.close()

    def _audit(self) -> dict[str, float]:
        """Audit by the command; its memory and the server's are what processes have for themselves."""
        began = time.perf_counter()
        process = self._service.start("audit", "--json")
        peak = Peak(self._service.parts()["postgresql"], process.pid)
        output, errors = peak.until_ended(process)
        seconds = time.perf_counter() - began
        if process.returncode != 0:
            raise NotMeasured(f"The audit was not content:\n{output[:2_000]}{errors[:2_000]}")
        server_bytes, client_bytes = peak.bytes
        return {"time_s": seconds, "server_bytes": server_bytes, "client_bytes": client_bytes}

    def _batches_of_the_sender(self) -> Iterator[int]:
        found = self._connection.execute(
            "SELECT id FROM batches WHERE organization_id = %s ORDER BY id", (self._senders[0].organization_id,)
        ).fetchall()
        return iter([int(str(row[0])) for row in found])

    def _all_references(self) -> Iterator[int]:
        """Yield rows of the first organization that have a reference, from step to step, as far as is filled."""
        for number in itertools.count():
            step, place = number * 7 % self._steps, number * 13 % (self._step // _STEP_MULTIPLE)
            yield step * self._step + place * _STEP_MULTIPLE + number % filling.RECIPIENTS

    def _until_quiet(self) -> None:
        """Wait until the workers have numbered all events, and listed what is held in full partitions."""
        deadline = time.monotonic() + _QUIET_IN_S
        while self._connection.execute(_UNNUMBERED).fetchone() is not None or not self._is_listed():
            if time.monotonic() > deadline:
                raise NotMeasured("The workers did not number the events and list what is held in time.")
            time.sleep(0.5)

    def _is_listed(self) -> bool:
        with transaction() as connection:
            full_to = partitions.look(connection).newest_first
        return self._connection.execute(_LISTED, (full_to,)).fetchone() is not None


_UNNUMBERED = "SELECT FROM unnumbered_events LIMIT 1"
_LISTED = "SELECT FROM held_listing WHERE listed_to >= %s"
