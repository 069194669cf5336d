"""Section `busy`: one organization, 1 to 32 callers of one-recipient sends, beside upper bounds.

Measured beside it in each round: an empty view under the same callers, and pgbench with as many clients (an UPDATE
of one row; the smallest transaction of a send). Once with worker events off (the default), once with them on.
"""

from collections.abc import Sequence
from functools import partial

from benchmarks import pgbench
from benchmarks.load import Plan, get, load, post_send
from benchmarks.options import Options
from benchmarks.rows import Measurement, Name, Row, named, take_turns
from benchmarks.service import Service, running
from benchmarks.waits import waits

CALLERS = (1, 8, 32)
ACCOUNTS = 1_000


def measure(options: Options) -> list[Row]:
    """Measure with worker events off, beside the bounds; then the same service with events on."""
    rows = []
    for events in ("off", "on"):
        with running(worker_events=events == "on") as service:
            measures = _measures(service, events, options.seconds)
            if events == "off":
                measures |= _measures_of_pgbench(service, options.seconds)
            rows += take_turns(measures, rounds=options.rounds)
    return rows


def _measures(service: Service, events: str, seconds: float) -> dict[Name, Measurement]:
    emails = service.accounts("busy", ACCOUNTS)
    measures: dict[Name, Measurement] = {}
    for callers in CALLERS:
        view, send = views(service, callers=callers), sends_of_one(service, emails, callers=callers)
        measures[named("/healthz", callers=callers, events=events)] = partial(_call, view, seconds)
        measures[named("send of one", callers=callers, events=events)] = partial(_send, service, send, seconds)
    return measures


def _measures_of_pgbench(service: Service, seconds: float) -> dict[Name, Measurement]:
    with service.connect() as connection:
        pgbench.prepare(connection)
    scripts = {"pgbench, UPDATE of one row": pgbench.UPDATE_OF_ONE_ROW}
    scripts["pgbench, transaction per send"] = pgbench.TRANSACTION_PER_SEND
    return {
        named(what, callers=callers): partial(
            pgbench.run, service.database_url, script, clients=callers, seconds=seconds
        )
        for callers in CALLERS
        for what, script in scripts.items()
    }


def views(service: Service, *, callers: int) -> Plan:
    """Plan callers of an empty view."""
    return Plan(port=service.port, requests=[get("/healthz")], callers=callers, expect=200)


def sends_of_one(service: Service, emails: Sequence[str], *, callers: int) -> Plan:
    """Plan callers of a new organization; each send goes to one of these addresses."""
    key = service.sender().key
    return Plan(port=service.port, requests=[post_send(key, [email]) for email in emails], callers=callers)


def _call(plan: Plan, seconds: float) -> dict[str, float]:
    seen = load(plan, seconds=seconds)[0]
    return {**seen.figures(), "load generator cores": seen.cpu_s / seconds}


def _send(service: Service, plan: Plan, seconds: float) -> dict[str, float]:
    """Send; meanwhile sample what PostgreSQL's sessions wait for, as seconds per send."""
    with waits(service.database_url) as waited:
        figures = _call(plan, seconds)
    sends = figures["rate_per_s"] * waited.seconds
    return figures | {f"{kind} wait_s": spent / sends for kind, spent in waited.by_kind_s.items()}
