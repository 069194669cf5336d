"""Flower beside the running service: the job of a batch, over its interface and on its pages."""

import json
import os
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from redis import Redis

from tests.browser.conftest import PATIENCE_MS
from tests.deadline import until
from tests.service.inside import Organization, Service

SEEN_WITHIN_S = 60


def flower(service: Service) -> httpx.Client:
    """Return a client of Flower with the password that `points up` has made."""
    password = json.loads((service.data_dir / "secrets.json").read_text())["flower"]
    return httpx.Client(base_url=f"http://127.0.0.1:{service.flower_port}", auth=("points", password), timeout=30)


def jobs(service: Service, caller: Organization) -> dict[str, dict[str, Any]]:
    """Return what Flower knows of an organization's jobs, by their ids."""
    with flower(service) as client:
        tasks: dict[str, dict[str, Any]] = client.get("/api/tasks", params={"taskname": "points.issue"}).json()
    return {name: task for name, task in tasks.items() if f"organization {caller.id}," in task["kwargs"]}


def until_no_worker_stays(service: Service) -> None:
    """Wait until the next send begins a job of its own."""
    with Redis.from_url(json.loads(service.command("status", "--json").stdout)["redis_url"]) as redis:
        until(lambda: not redis.exists("points:staying"), within_s=SEEN_WITHIN_S)


@pytest.fixture(scope="module", name="service")
def _alone(narrow_of_a_file: Service) -> Service:
    """Return a service that nobody else sends to: a worker that stays takes what others send into the same job."""
    return narrow_of_a_file


@pytest.fixture(scope="module")
def sent(service: Service) -> tuple[Organization, str, int]:
    """Send a batch of three; return its sender, the mark in its addresses, and its id."""
    until_no_worker_stays(service)
    caller, mark = service.organization(100), uuid.uuid4().hex
    answer = service.send(caller.live, {"recipients": [f"{n}.{mark}@example.com" for n in range(3)], "amount": 5})
    assert answer.status_code == 201
    return caller, mark, answer.json()["additional_data"]["batch_id"]


@pytest.fixture
def page(browser: Browser, service: Service) -> Iterator[Page]:
    with flower(service) as client:
        base_url = str(client.base_url)
    password = json.loads((service.data_dir / "secrets.json").read_text())["flower"]
    context = browser.new_context(
        base_url=base_url,
        http_credentials={"username": "points", "password": password},
        viewport={"width": 1280, "height": 844},
    )
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


def test_a_job_names_organization_and_size_and_no_address(
    service: Service, sent: tuple[Organization, str, int]
) -> None:
    caller, mark, batch_id = sent
    until(lambda: any(job["state"] == "SUCCESS" for job in jobs(service, caller).values()), within_s=SEEN_WITHIN_S)
    [job] = jobs(service, caller).values()
    # Its sender's first, so that it could be asked for only once it was accepted.
    assert job["kwargs"].startswith(f"organization {caller.id}, batch {batch_id}, recipients 3, request ")
    assert job["result"] == f"[{batch_id}]"
    assert mark not in json.dumps(job)
    assert "@example.com" not in json.dumps(job)


def test_each_batch_is_in_the_result_of_one_job_and_a_job_names_the_batch_that_began_it(service: Service) -> None:
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


def test_the_search_that_the_page_gives_finds_the_jobs_of_a_batch(service: Service) -> None:
    page = (Path(__file__).parents[2] / "docs" / "observing.md").read_text()
    [query] = re.findall(r'search for `(".*?)`', page)
    caller = service.organization(100)
    sent = [service.send(caller.live, {"recipient": "ann@example.com", "amount": 1}).json() for _ in range(3)]
    batch_id = sent[1]["additional_data"]["batch_id"]

    def found() -> list[list[int]]:
        asked = {"search": query.replace("42", str(batch_id))}
        with flower(service) as client:
            tasks = client.get("/api/tasks", params=asked).json()
        return [json.loads(task["result"] or "[]") for task in tasks.values()]

    until(lambda: any(batch_id in issued for issued in found()), within_s=SEEN_WITHIN_S)


def test_nobody_looks_without_the_password(service: Service) -> None:
    for path in ("/", "/tasks", "/api/tasks", "/api/workers"):
        assert httpx.get(f"http://127.0.0.1:{service.flower_port}{path}", timeout=30).status_code == 401


def test_it_is_for_looking_only(service: Service) -> None:
    with flower(service) as client:
        assert client.post("/api/worker/shutdown/worker1@nowhere").status_code in (403, 405)


def test_the_sweeps_do_not_bury_the_jobs(service: Service, sent: tuple[Organization, str, int]) -> None:
    with flower(service) as client:
        names = {task["name"] for task in client.get("/api/tasks").json().values()}
    assert names == {"points.issue"}


def test_it_remembers_the_jobs_over_a_restart(service: Service, sent: tuple[Organization, str, int]) -> None:
    caller, _, _ = sent
    until(lambda: bool(jobs(service, caller)), within_s=SEEN_WITHIN_S)
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


def test_the_page_of_tasks_shows_the_job_with_its_organization_and_recipients(
    service: Service, sent: tuple[Organization, str, int], page: Page
) -> None:
    caller, mark, batch_id = sent
    until(lambda: bool(jobs(service, caller)), within_s=SEEN_WITHIN_S)
    page.goto("/tasks")
    row = page.locator("#tasks-table tbody tr", has_text=f"batch {batch_id},")
    expect(row).to_contain_text(f"organization {caller.id}, batch {batch_id}, recipients 3")
    expect(row).to_contain_text(f"[{batch_id}]")
    _keep_picture(page, "flower-tasks")
    page.goto(f"/task/{next(iter(jobs(service, caller)))}")
    expect(page.locator("body")).to_contain_text(f"organization {caller.id}, batch {batch_id}, recipients 3")
    assert not re.search(rf"{mark}|@example\.com|pts_", page.content())
    _keep_picture(page, "flower-task")


def _keep_picture(page: Page, name: str) -> None:
    """Leave a picture for a person to look at, where one is asked for."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
