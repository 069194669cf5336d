"""The platform's log inside: written with its change or not at all, numbered by itself, dropped after its time."""

import pytest

from app.events import event_types, sequencer
from app.platform import keys
from app.postgres.database import transaction
from app.web.application import create_app
from tests.integration import books
from tests.integration.logs_of_events import events_of, number_all

pytestmark = pytest.mark.usefixtures("database", "broker")

ANN, BOB = "ann@example.com", "bob@example.com"


def test_events_past_their_time_are_dropped_and_the_caller_is_told_where_to_go_on() -> None:
    books.make_organization(10, sandbox_balance=20)
    books.make_users(ANN)
    number_all()
    past = "created_at = created_at - interval '91 days'"
    books.rewrite(
        *(f"UPDATE {table} SET {past}" for table in ("users", "organizations", "refills")),
        f"UPDATE events SET {past} WHERE organization_id = 0",
    )
    books.make_users(BOB)
    number_all()
    with transaction() as connection:
        assert sequencer.drop_old_events(connection, older_than_days=90, at_most=100) == 4
        _, key = keys.create(connection, "Tests")
    assert [event["sequence"] for event in events_of(event_types.PLATFORM)] == [5]
    assert books.breaches() == []
    client = create_app().test_client()
    headers = {"Authorization": f"Bearer {key}"}
    refused = client.get("/v1/platform/events?after=3", headers=headers)
    assert (refused.status_code, refused.get_json()["additional_data"]["oldest"]) == (410, 5)
    assert "after=4" in refused.get_json()["errors"]["after"][0]
    for query in ("", "?after=4"):
        found = client.get(f"/v1/platform/events{query}", headers=headers).get_json()["data"]
        assert [event["sequence"] for event in found["events"]] == [5]
