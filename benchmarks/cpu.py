"""Section `cpu`: the CPU time of one call by part, for an empty view and for sends of one recipient.

Unlike rates and latencies, it hardly depends on other load on the machine.
"""

from functools import partial

from benchmarks.busy import ACCOUNTS, CALLERS, sends_of_one, views
from benchmarks.load import Plan, load, together
from benchmarks.options import Options
from benchmarks.rows import Measurement, Name, Row, named, take_turns
from benchmarks.service import Service, running
from benchmarks.usage import cpu_s


def measure(options: Options) -> list[Row]:
    """Measure both calls under 1, 8 and 32 callers, in turn."""
    with running() as service:
        emails = service.accounts("cpu", ACCOUNTS)
        measures: dict[Name, Measurement] = {}
        for callers in CALLERS:
            plans = {
                "/healthz": views(service, callers=callers),
                "send of one": sends_of_one(service, emails, callers=callers),
            }
            for what, plan in plans.items():
                name = named(what, callers=callers)
                measures[name] = partial(measure_calls, service, plan, seconds=options.seconds)
        return take_turns(measures, rounds=options.rounds)


def measure_calls(service: Service, *plans: Plan, seconds: float) -> dict[str, float]:
    """Return the CPU milliseconds of a call by part and in all, with the rate and p50.

    CPU time is read before and after the whole load, so both the time and the count include the warm-up.

    Raises:
        NotMeasured: no call ended in the counted seconds.
    """
    before = cpu_s(service.parts())
    seen = together(load(*plans, seconds=seconds))
    after = cpu_s(service.parts())
    figures = seen.figures()
    spent = {part: (after[part] - before[part]) * 1e3 / seen.calls_in_all for part in before}
    spent["all parts"] = sum(spent.values())
    spent["load generator"] = seen.cpu_s * 1e3 / seen.calls
    return {f"{part} cpu_ms": value for part, value in spent.items()} | {
        name: figures[name] for name in ("rate_per_s", "p50_s")
    }
