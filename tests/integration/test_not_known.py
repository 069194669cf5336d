"""What cannot be decided in time is not known: the API, the client and the console say so in one way."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from app.batches.errors import NotKnown
from app.members.members import SENDER
from app.postgres import connections
from app.postgres.database import transaction
from app.postgres.locks import lock_organization
from app.web.application import create_app
from points_client import NoAnswer, Points
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.visitors import visitor

pytestmark = pytest.mark.usefixtures("database")


def test_while_a_worker_holds_the_organization_it_is_not_known_what_becomes_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "LOCK_TIMEOUT_MS", 100)
    forget_everything()  # The connections that are made now have that limit.
    app, organization_id = create_app(), books.make_organization(100)
    key, member = books.make_live_key(organization_id), visitor(app, organization_id, SENDER)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    batch_id = books.queue_batch(organization_id, ["ann@example.com"], 10, send_at=tomorrow)
    caller, headers = app.test_client(), {"Authorization": f"Bearer {key}"}
    batch = f"/v1/batches/{batch_id}"
    calls = (
        ("POST", f"{batch}/cancel", None),
        ("PATCH", batch, {"send_at": (tomorrow + timedelta(hours=1)).isoformat()}),
        ("POST", f"{batch}/approve", None),
        ("POST", f"{batch}/reject", {"reason": "x"}),
    )
    with (
        transaction() as frozen,
        Points(key, "http://127.0.0.1", patience_s=1, transport=httpx.WSGITransport(app=app)) as points,
    ):
        lock_organization(frozen, organization_id)
        for method, path, body in calls:
            answer = caller.open(path, method=method, headers=headers, json=body)
            assert (answer.status_code, answer.get_json()["additional_data"]) == (503, {"code": "not_known"})
            assert answer.get_json()["errors"] == {"batch": [NotKnown.says]}
            assert int(answer.headers["Retry-After"]) > 0
        with pytest.raises(NoAnswer) as unknown:
            points.batches.cancel(batch_id)
        assert (unknown.value.code, unknown.value.errors) == ("not_known", {"batch": [NotKnown.says]})
        page = member.post(f"/batches/{batch_id}/cancel", of=f"/batches/{batch_id}/cancel")
        assert page.status_code == 303
        shown = member.get(page.headers["Location"]).text
        assert NotKnown.says in shown
        assert "Cancel this batch" in shown, "it can be asked again at once"
    with Points(key, "http://127.0.0.1", transport=httpx.WSGITransport(app=app)) as points:
        assert points.batches.cancel(batch_id).status == "cancelled"
