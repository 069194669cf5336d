"""A service whose partitions are tiny: what it promises holds across them, also where none is ready."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deadline import until
from tests.service.inside import Organization, Service

_SIZE = 64
ANN = "ann@example.com"


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Service]:
    """Run a service whose partitions have 64 batch ids: three sends of 500 take more. At its end the books balance."""
    service = Service(tmp_path / "data", POINTS_PARTITION_BATCH_IDS=str(_SIZE))
    service.command("migrate")
    with service.running() as running:
        yield running


@pytest.mark.long
def test_points_are_sent_claimed_reversed_and_listed_across_partitions_also_where_none_is_ready(tiny: Service) -> None:
    acme = tiny.organization(1_000_000)
    tiny.account(ANN)
    batch_ids = [_sent(tiny, acme, number) for number in range(8)]
    assert batch_ids[-1] // _SIZE - batch_ids[0] // _SIZE >= 3
    _draw_ids(tiny, 100 * _SIZE)  # The drain makes what it needs, unless the upkeep is faster.
    batch_ids.append(_sent(tiny, acme, 8))

    # Bob was sent points in each batch, before he registered: in each partition.
    tiny.account("bob@example.com")
    assert tiny.json("users", "show", "bob@example.com")["balance"] == 9
    assert {row["state"] for row in _listed(tiny, acme, email="bob@example.com")} == {"credited"}

    for batch_id in (batch_ids[0], batch_ids[-1]):
        body = {"batch": batch_id, "reason": "a mistake"}
        done = tiny.call("POST", "/v1/points/reverse", key=acme.live, json=body)
        assert (done.status_code, done.json()["data"]["amount"]) == (201, 502)
    assert tiny.json("users", "show", ANN)["balance"] == 7
    assert tiny.balance(acme.live) == 1_000_000 - 7 * 502

    for filters in ({"email": ANN}, {"reference": "ann"}, {"email": ANN, "debited": "true"}):
        assert [row["id"] // 131_072 for row in _listed(tiny, acme, **filters)] == batch_ids[::-1]
    held = _listed(tiny, acme, state="held")
    assert len(held) == 7 * 500
    assert sum(1 for row in _listed(tiny, acme, state="reversed")) == 2 * 502
    until(lambda: tiny.json("status")["partitions_ahead"] >= 4, "the upkeep makes what is missing")


def _sent(service: Service, organization: Organization, number: int) -> int:
    """Send to Ann, to Bob and to 500 strangers, and return the batch."""
    strangers = [{"email": f"stranger{number}.{place}@example.com"} for place in range(500)]
    ours = [{"email": ANN, "reference": "ann"}, {"email": "bob@example.com"}]
    sent = service.send(organization.live, {"items": [*ours, *strangers], "amount": 1})
    assert sent.status_code == 201, sent.text
    return int(sent.json()["additional_data"]["batch_id"])


def _draw_ids(service: Service, newest_id: int) -> None:
    with service.connection() as connection:
        connection.exec_driver_sql(f"SELECT setval('batches_id_seq', {newest_id})")


def _listed(service: Service, organization: Organization, **filters: str) -> list[dict[str, Any]]:
    """Return all transactions of a list, page by page."""
    rows: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        query = {**filters, **cursor, "limit": "400"}
        data = service.call("GET", "/v1/transactions", key=organization.live, params=query).json()["data"]
        rows += data["transactions"]
        if data["next_cursor"] is None:
            return rows
        cursor = {"cursor": data["next_cursor"]}
