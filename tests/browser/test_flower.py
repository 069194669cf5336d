"""Flower beside the running service: the job of a batch, over its interface and on its pages."""

import json
import os
import re
import signal
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect
from redis import Redis

from app.local.datadir import DataDir
from app.local.valkey import Valkey
from tests.browser.conftest import PATIENCE_MS
from tests.deadline import until
from tests.service.inside import Organization, Service

SEEN_WITHIN_S = 60


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
        until(lambda: not redis.exists("points:staying"), within_s=SEEN_WITHIN_S)


@pytest.fixture(scope="module", name="service")
def _alone(narrow_of_a_file: Service) -> Service:
    """Return a service that nobody else sends to: a worker that stays takes what others send into the same job."""
    return narrow_of_a_file


@pytest.fixture(scope="module")
def sent(service: Service) -> tuple[Organization, str, int]:
    """Send a batch of three; return its sender, the mark in its addresses, and its id, once its job is shown."""
    until_no_worker_stays(service)
    caller, mark = service.organization(100), uuid.uuid4().hex
    answer = service.send(caller.live, {"recipients": [f"{n}.{mark}@example.com" for n in range(3)], "amount": 5})
    assert answer.status_code == 201
    until(lambda: any(job["state"] == "SUCCESS" for job in jobs(service, caller).values()), within_s=SEEN_WITHIN_S)
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


def test_the_search_that_the_page_gives_finds_the_one_job_whose_result_has_a_batch(service: Service) -> None:
    page = (Path(__file__).parents[2] / "docs" / "observing.md").read_text()
    [query] = re.findall(r'search for `(".*?)`', page)
    until_no_worker_stays(service)
    caller = service.organization(100)
    sent = [service.send(caller.live, {"recipients": ["ann@example.com"], "amount": 1}).json() for _ in range(6)]
    batch_ids = [answer["additional_data"]["batch_id"] for answer in sent]

    def said() -> list[int]:
        """Return the batches of all jobs. One that stays issues those that come meanwhile."""
        return sorted(number for job in jobs(service, caller).values() for number in json.loads(job["result"] or "[]"))

    until(lambda: said() == sorted(batch_ids), within_s=SEEN_WITHIN_S)
    names = {job["kwargs"].split(", ")[1] for job in jobs(service, caller).values()}
    assert f"batch {batch_ids[0]}" in names
    assert names <= {f"batch {number}" for number in batch_ids}
    found = asked(service, "/api/tasks", search=query.replace("42", str(batch_ids[1])))
    assert any(batch_ids[1] in json.loads(task["result"] or "[]") for task in found.values())


def test_it_is_for_looking_only_and_for_nobody_without_the_password(service: Service) -> None:
    url = f"http://127.0.0.1:{service.flower_port}"
    for path in ("/", "/tasks", "/api/tasks", "/api/workers"):
        assert httpx.get(url + path, timeout=30).status_code == 401
    stop = httpx.post(f"{url}/api/worker/shutdown/worker1@nowhere", auth=httpx.BasicAuth(**login(service)), timeout=30)
    assert stop.status_code in (403, 405)


@pytest.mark.long
def test_it_remembers_the_jobs_over_a_restart(service: Service, sent: tuple[Organization, str, int]) -> None:
    caller, _, _ = sent
    known = jobs(service, caller).keys()
    parts = json.loads((service.data_dir / "running.json").read_text())["parts"]
    os.kill(parts["flower"]["pid"], signal.SIGTERM)

    def is_back() -> bool:
        now = json.loads((service.data_dir / "running.json").read_text())["parts"]
        try:
            return now["flower"]["pid"] != parts["flower"]["pid"] and jobs(service, caller).keys() == known
        except (KeyError, httpx.TransportError):
            return False

    until(is_back, within_s=SEEN_WITHIN_S)


@pytest.mark.long
def test_the_page_of_tasks_shows_the_job_with_its_organization_and_recipients(
    service: Service, sent: tuple[Organization, str, int], browser: Browser
) -> None:
    caller, mark, batch_id = sent
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{service.flower_port}",
        http_credentials={"username": "points", "password": login(service)["password"]},
        viewport={"width": 1280, "height": 844},
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto("/tasks")
    row = page.locator("#tasks-table tbody tr", has_text=f"batch {batch_id},")
    expect(row).to_contain_text(f"organization {caller.id}, batch {batch_id}, recipients 3")
    expect(row).to_contain_text(f"[{batch_id}]")
    page.goto(f"/task/{next(iter(jobs(service, caller)))}")
    expect(page.locator("body")).to_contain_text(f"organization {caller.id}, batch {batch_id}, recipients 3")
    assert not re.search(rf"{mark}|@example\.com|pts_", page.content())
    context.close()
