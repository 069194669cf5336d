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

_FAULTS: tuple[Fault, ...] = (
    faults_of_processes.a_worker_child_is_killed,
    faults_of_processes.the_upkeep_of_a_worker_is_killed,
    faults_of_processes.a_whole_worker_is_killed,
    faults_of_processes.the_parent_of_a_worker_is_killed,
    faults_of_processes.what_delivers_webhooks_is_killed,
    faults_of_processes.web_is_killed_after_commit_and_before_the_answer,
    faults_of_processes.web_is_killed_between_commit_and_submit,
    faults_of_processes.a_worker_is_killed_between_lock_and_commit,
    faults_of_processes.a_worker_is_killed_between_commit_and_acknowledgement,
    faults_of_processes.web_is_asked_to_stop_under_load,
    faults_of_processes.workers_are_asked_to_stop_under_load,
    faults_of_servers.the_broker_is_killed_and_comes_back_empty,
    faults_of_servers.the_broker_is_killed_and_comes_back_full,
    faults_of_servers.the_broker_and_beat_are_gone_for_long,
    faults_of_servers.the_broker_is_frozen,
    faults_of_servers.the_broker_refuses_to_write,
    faults_of_servers.postgresql_is_stopped_at_once,
    faults_of_servers.a_backend_of_postgresql_is_killed,
    faults_of_servers.backends_of_postgresql_are_terminated,
    faults_of_servers.the_disk_is_full,
    faults_of_networks.the_connection_is_cut_after_commit_was_sent,
    faults_of_networks.the_connection_is_cut_before_commit_arrives,
    faults_of_networks.the_connections_are_slow,
    faults_of_networks.postgresql_is_a_black_hole,
    faults_of_networks.redis_is_a_black_hole,
    faults_of_networks.connections_to_postgresql_fall_silent_for_good,
    faults_of_networks.connections_to_redis_fall_silent_for_good,
    faults_of_networks.postgresql_refuses_connections,
    faults_of_networks.redis_refuses_connections,
    faults_of_delivery.each_task_is_delivered_three_times_late_and_in_disorder,
    faults_of_delivery.the_visibility_timeout_is_shorter_than_a_drain,
    faults_of_delivery.a_batch_is_poisonous,
    faults_of_delivery.a_batch_ends_its_connection,
    faults_of_delivery.clocks_are_an_hour_apart,
    faults_of_delivery.clocks_are_a_year_apart,
    faults_of_delivery.beat_is_killed,
    faults_of_neighbours.a_snapshot_is_held_open,
    faults_of_neighbours.redis_is_emptied,
    faults_of_neighbours.redis_takes_no_more_clients,
    faults_of_neighbours.an_organization_is_disabled_with_reversals_queued,
    faults_of_postgresql.the_clock_of_postgresql_is_stepped,
    faults_of_postgresql.the_disk_of_postgresqls_data_is_full,
    faults_of_postgresql.the_disk_of_postgresqls_log_is_full,
    faults_of_postgresql.commits_are_slow,
    faults_of_postgresql.a_standby_is_promoted,
    faults_of_sign_ups.web_is_killed_between_a_claim_and_the_answer,
    faults_of_sign_ups.people_sign_up_while_workers_and_postgresql_die,
)
KINDS: dict[str, Fault] = {fault.__name__: fault for fault in _FAULTS}
_NEED_A_DISK = [
    faults_of_servers.the_disk_is_full.__name__,
    faults_of_postgresql.the_disk_of_postgresqls_data_is_full.__name__,
    faults_of_postgresql.the_disk_of_postgresqls_log_is_full.__name__,
]
_NEEDS_A_CLOCK = faults_of_postgresql.the_clock_of_postgresql_is_stepped.__name__


def impossible(service: Service) -> dict[str, str]:
    """Return the kinds that cannot be had on this machine, each with the reason."""
    found = {}
    if not all(disk.is_mounted for disk in service.disks):
        found = dict.fromkeys(_NEED_A_DISK, "this needs file systems of its own, and this user may not mount one")
    if not clock.can_be_set():
        found[_NEEDS_A_CLOCK] = "libfaketime is not there, or not made for this system"
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
