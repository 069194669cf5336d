"""Flower beside the running service: the job of a batch, over its interface and on its pages."""

import json
import uuid
from typing import Any

import httpx
import pytest
from redis import Redis

from app.local.datadir import DataDir
from app.local.valkey import Valkey
from tests.deadline import until
from tests.service.inside import Organization, Service


def login(service: Service) -> dict[str, str]:
    """Return the password that `points up` has made, with its user."""
    return {"username": "points", "password": json.loads((service.data_dir / "secrets.json").read_text())["flower"]}


def asked(service: Service, path: str, **parameters: str) -> Any:
    url = f"http://127.0.0.1:{service.flower_port}{path}"
    return httpx.get(url, params=parameters, auth=httpx.BasicAuth(**login(service)), timeout=30).json()


def jobs(service: Service, caller: Organization) -> dict[str, dict[str, Any]]:
    """Return what Flower knows of an organization's jobs, by their ids."""
    tasks: dict[str, dict[str, Any]] = asked(service, "/api/tasks", taskname="points.issue")
    return {name: task for name, task in tasks.items() if f"organization {caller.id}," in task["kwargs"]}


def until_no_worker_stays(service: Service) -> None:
    """Wait until the next send begins a job of its own."""
    with Redis.from_url(Valkey(DataDir(service.data_dir)).url()) as redis:
        until(lambda: not redis.exists("points:staying"))


@pytest.fixture(scope="module")
def service(narrow_of_a_file: Service) -> Service:
    """Give a service to which nobody else sends: a worker that stays takes a send into the job that it has."""
    return narrow_of_a_file


@pytest.fixture(scope="module")
def sent(service: Service) -> tuple[Organization, str, int]:
    """Send a batch of three; return its sender, the mark in its addresses, and its id, once its job is shown."""
    until_no_worker_stays(service)
    caller, mark = service.organization(100), uuid.uuid4().hex
    answer = service.send(caller.live, {"recipients": [f"{n}.{mark}@example.com" for n in range(3)], "amount": 5})
    assert answer.status_code == 201
    until(lambda: any(job["state"] == "SUCCESS" for job in jobs(service, caller).values()))
    return caller, mark, answer.json()["additional_data"]["batch_id"]


def test_a_job_names_organization_and_size_and_no_address_and_no_sweep_buries_it(
    service: Service, sent: tuple[Organization, str, int]
) -> None:
    caller, mark, batch_id = sent
    [job] = jobs(service, caller).values()
    # Its sender's first, so that it could be asked for only once it was accepted.
    assert job["kwargs"].startswith(f"organization {caller.id}, batch {batch_id}, recipients 3, request ")
    assert job["result"] == f"[{batch_id}]"
    assert mark not in json.dumps(job)
    assert "@example.com" not in json.dumps(job)
    assert {task["name"] for task in asked(service, "/api/tasks").values()} == {"points.issue"}


def test_it_is_for_looking_only_and_for_nobody_without_the_password(service: Service) -> None:
    url = f"http://127.0.0.1:{service.flower_port}"
    for path in ("/", "/tasks", "/api/tasks", "/api/workers"):
        assert httpx.get(url + path, timeout=30).status_code == 401
    stop = httpx.post(f"{url}/api/worker/shutdown/worker1@nowhere", auth=httpx.BasicAuth(**login(service)), timeout=30)
    assert stop.status_code in (403, 405)
