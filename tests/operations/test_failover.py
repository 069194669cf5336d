"""A failover of PostgreSQL behind a name that leads to the standby for a moment, while it still only reads."""

from pathlib import Path

import httpx
import pytest

from app.local import ports
from tests.crash.proxy import Proxy
from tests.deadline import until
from tests.integration import books
from tests.operations.server import Pair
from tests.ports import free_port
from tests.service.deployment import deployment, is_ready

_PATIENCE_S = 60
_END_ALL = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'points'"


@pytest.mark.long
@pytest.mark.usefixtures("broker")
def test_web_and_worker_follow_the_name_to_the_primary(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_READ_URL")
    there, other, port = pair.primary.port(), pair.standby.port(), free_port()
    key = books.make_live_key(books.make_organization(1_000))
    with Proxy(free_port(), there) as name:
        url = pair.primary.postgresql.url().replace(f":{there}/", f":{name.port}/")
        with deployment(tmp_path / "parts", DATABASE_URL=url) as parts:
            parts.web(port)
            parts.worker("worker1")
            assert _send(port, key) == 201

            name.tell("targets", other)
            # Again and again: one that is being made has no name yet.
            until(lambda: pair.primary.ask(_END_ALL) == "0", "none leads to the primary", within_s=_PATIENCE_S)
            until(lambda: not is_ready(port), "web says that it cannot write", within_s=_PATIENCE_S)
            assert {_send(port, key) for _ in range(5)} == {503}

            name.tell("targets", there)
            until(lambda: is_ready(port), within_s=_PATIENCE_S)
            assert _send(port, key) == 201
            assert parts.deaths() == {}


def _send(port: int, key: str) -> int:
    return httpx.post(
        f"http://{ports.HOST}:{port}/v1/points/send",
        json={"recipient": "ada@example.com", "amount": 1},
        headers={"Authorization": f"Bearer {key}"},
        timeout=_PATIENCE_S,
    ).status_code
