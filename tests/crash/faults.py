"""The kinds of fault, each under its name, and the plan that a seed gives."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.crash import (
    clock,
    faults_of_delivery,
    faults_of_neighbours,
    faults_of_networks,
    faults_of_postgresql,
    faults_of_processes,
    faults_of_servers,
    faults_of_sign_ups,
)
from tests.crash.scene import Scene
from tests.crash.service import Service

Fault = Callable[[Scene], None]

_MODULES = (
    faults_of_processes,
    faults_of_servers,
    faults_of_networks,
    faults_of_delivery,
    faults_of_neighbours,
    faults_of_postgresql,
    faults_of_sign_ups,
)
# Every function of these that has a name of its own.
KINDS: dict[str, Fault] = {
    name: fault
    for module in _MODULES
    for name, fault in vars(module).items()
    if getattr(fault, "__module__", "") == module.__name__ and not name.startswith("_")
}
# One of each sort, which `make test` brings about; the others are variations of these.
QUICK = {
    "a_batch_is_poisonous",
    "a_standby_is_promoted",
    "a_worker_is_killed_between_commit_and_acknowledgement",
    "a_worker_is_killed_between_lock_and_commit",
    "each_task_is_delivered_three_times_late_and_in_disorder",
    "postgresql_is_stopped_at_once",
    "redis_is_emptied",
    "the_broker_is_killed_and_comes_back_empty",
    "the_connection_is_cut_after_commit_was_sent",
    "web_is_killed_after_commit_and_before_the_answer",
    "web_is_killed_between_a_claim_and_the_answer",
    "web_is_killed_between_commit_and_submit",
    "what_delivers_webhooks_is_killed",
}
_NEED_A_DISK = ("the_disk_is_full", "the_disk_of_postgresqls_data_is_full", "the_disk_of_postgresqls_log_is_full")
_NEED_A_CLOCK = ("the_clock_of_postgresql_is_stepped", "clocks_are_an_hour_apart", "clocks_are_a_year_apart")


def impossible(service: Service) -> dict[str, str]:
    """Return the kinds that cannot be had on this machine, each with the reason."""
    found = {}
    if not all(disk.is_mounted for disk in service.disks):
        found = dict.fromkeys(_NEED_A_DISK, "this needs file systems of its own, and this user may not mount one")
    if not clock.can_be_set():
        found |= dict.fromkeys(_NEED_A_CLOCK, "libfaketime is not there, or not made for this system")
    return found


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One fault of a plan. `seed` decides its details, so that they do not hang on the faults before it."""

    number: int
    kind: str
    seed: str


def plan(seed: int, faults: int, kinds: Sequence[str]) -> list[Planned]:
    """Return the faults of a run in their order: each kind as often as every other, but for one."""
    order = random.Random(f"{seed} plan")  # noqa: S311  # It is to be repeated, not secret.
    kinds = list(kinds)
    chosen: list[str] = []
    while len(chosen) < faults:
        order.shuffle(kinds)
        chosen += kinds
    return [
        Planned(number=number, kind=kind, seed=f"{seed} fault {number}") for number, kind in enumerate(chosen[:faults])
    ]
