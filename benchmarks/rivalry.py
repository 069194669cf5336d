"""Section `rival`: sends of 10,000, and 32 callers of one-recipient sends, beside `benchmarks.rival`."""

from functools import partial

from app.local.ports import HOST
from benchmarks import floor
from benchmarks.busy import ACCOUNTS
from benchmarks.caller import Caller
from benchmarks.load import Plan, answered_s, load, post_send
from benchmarks.options import Options
from benchmarks.rival import processes
from benchmarks.rows import Measurement, Name, Row, named, take_turns

CALLERS = 32
LARGE = 10_000


def measure(options: Options) -> list[Row]:
    """Measure ours and the rival in turn on the same servers, beside the floor."""
    with floor.beside() as (service, connection):
        emails = service.accounts("rival", LARGE)
        with processes.running(emails) as rival:
            measures: dict[Name, Measurement] = {named("floor", recipients=LARGE): floor.measurement(connection, LARGE)}
            key = service.sender().key
            for who, port, path, its_key in (
                ("ours", service.port, "/v1/points/send", key),
                ("rival", rival.port, "/send", processes.KEY),
            ):
                large = post_send(its_key, emails, path=path)
                ones = [post_send(its_key, [email], path=path) for email in emails[:ACCOUNTS]]
                measures[named(f"{who}, whole send", recipients=LARGE)] = partial(_once, port, large)
                plan = Plan(port=port, requests=ones, callers=CALLERS)
                measures[named(f"{who}, send of one", callers=CALLERS)] = partial(_many, plan, options.seconds)
            return take_turns(measures, rounds=options.rounds, wait_idle=service.wait_until_folded)


def _once(port: int, request: bytes) -> dict[str, float]:
    caller = Caller(HOST, port, [request], 0)
    seconds = answered_s(caller, request, expect=201)
    caller.close()
    return {"time_s": seconds}


def _many(plan: Plan, seconds: float) -> dict[str, float]:
    return load(plan, seconds=seconds)[0].figures()
