"""Section `several`: several busy organizations, and a small one beside one that sends to 10,000 at a time."""

from collections.abc import Sequence
from functools import partial

from benchmarks.busy import ACCOUNTS, sends_of_one
from benchmarks.load import Plan, load, post_send, together
from benchmarks.options import Options
from benchmarks.rows import Measurement, Name, Row, named, take_turns
from benchmarks.service import Service, running

ORGANIZATIONS = (1, 2, 4)
CALLERS_EACH = (1, 8)
LARGE = 10_000


def measure(options: Options) -> list[Row]:
    """Measure 1, 2 and 4 organizations with as many callers each, in turn; then the small one.

    The small one comes last: many sends of 10,000 make the disk slow for a while.
    """
    with running() as service:
        emails = service.accounts("several", ACCOUNTS)
        together: dict[Name, Measurement] = {}
        for callers in CALLERS_EACH:
            plans = [sends_of_one(service, emails, callers=callers) for _ in range(max(ORGANIZATIONS))]
            for count in ORGANIZATIONS:
                name = named("busy at once", organizations=count, callers=callers)
                together[name] = partial(_together, plans[:count], options.seconds)
        small = sends_of_one(service, emails, callers=1)
        large = sends_of_all(service, service.accounts("large", LARGE))
        beside = {
            named("small organization, alone"): partial(_small, [small], options.seconds),
            named("small organization, beside 10,000"): partial(_small, [small, large], options.seconds),
        }
        wait_idle = service.wait_until_folded
        sections = [take_turns(measures, rounds=options.rounds, wait_idle=wait_idle) for measures in (together, beside)]
        return [row for rows in sections for row in rows]


def sends_of_all(service: Service, emails: Sequence[str]) -> Plan:
    """Plan one caller of a new organization; each send goes to all of these addresses."""
    return Plan(port=service.port, requests=[post_send(service.sender().key, emails)], callers=1)


def _together(plans: list[Plan], seconds: float) -> dict[str, float]:
    """Return the rate and the latencies of all callers together."""
    return together(load(*plans, seconds=seconds)).figures()


def _small(plans: list[Plan], seconds: float) -> dict[str, float]:
    """Return p50 and p99 of the first plan's callers; it runs twice as long, as p99 needs many calls."""
    figures = load(*plans, seconds=2 * seconds)[0].figures()
    return {name: figures[name] for name in ("p50_s", "p99_s")}
