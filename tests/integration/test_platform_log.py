"""The platform's log inside: written with its change or not at all, numbered by itself, dropped after its time."""

import pytest

from app import users
from app.events import log, sequencer
from app.ledger.claim import register
from app.ledger.registering import change_user
from app.platform import keys
from app.postgres.database import transaction
from app.web.application import create_app
from tests.integration import books
from tests.integration.logs_of_events import events_of, number_all, types_of

pytestmark = pytest.mark.usefixtures("database", "broker")

ANN, BOB = "ann@example.com", "bob@example.com"


def test_what_is_rolled_back_is_not_told_and_leaves_no_gap() -> None:
    for is_kept in (True, False, True):
        with transaction() as connection:
            register(connection, [users.new_user(ANN if is_kept else BOB, "First", "Last")])
            if not is_kept:
                connection.rollback()
    books.make_users(BOB)
    told = events_of(log.PLATFORM)
    assert [(event["sequence"], event["type"]) for event in told] == [(1, "user.registered"), (2, "user.registered")]


def test_many_registrations_of_one_address_are_told_once_and_an_erased_user_by_id_alone() -> None:
    [user_id, _] = books.make_users(ANN, BOB)
    assert books.make_users(ANN) == [user_id]
    with transaction() as connection:
        for changes in ({"first_name": "First"}, {"first_name": "Second", "last_name": "Last"}, {"external_id": None}):
            change_user(connection, user_id, changes)
        log.write_of_user(connection, log.USER_ERASED, user_id)
    told = events_of(log.PLATFORM)[2:]
    assert [(event["type"], event["data"]) for event in told] == [
        ("user.changed", {"user": {"id": user_id}, "fields": ["first_name"]}),
        ("user.erased", {"user": {"id": user_id}}),
    ]
    assert books.breaches() == []


def test_a_log_is_numbered_beside_those_of_organizations() -> None:
    organization_id = books.make_organization(10, sandbox_balance=20)
    books.make_users(ANN)
    number_all()
    assert types_of(log.PLATFORM) == [
        *("organization.created", "balance.refilled", "balance.refilled", "user.registered")
    ]
    assert types_of(organization_id) == ["balance.refilled"]
    for whose, sandbox in ((log.PLATFORM, False), (organization_id, False), (organization_id, True)):
        sequences = [event["sequence"] for event in events_of(whose, sandbox=sandbox)]
        assert sequences == list(range(1, len(sequences) + 1))


def test_events_past_their_time_are_dropped_and_the_caller_is_told_where_to_go_on() -> None:
    books.make_organization(10, sandbox_balance=20)
    books.make_users(ANN)
    number_all()
    past = "created_at = created_at - interval '91 days'"
    books.execute(
        *books.WITHOUT_GUARDS,
        *(f"UPDATE {table} SET {past}" for table in ("users", "organizations", "refills")),
        f"UPDATE events SET {past} WHERE organization_id = 0",
        *books.WITH_GUARDS,
    )
    books.make_users(BOB)
    number_all()
    with transaction() as connection:
        assert sequencer.drop_old_events(connection, older_than_days=90, at_most=100) == 4
        _, key = keys.create(connection, "Tests")
    assert [event["sequence"] for event in events_of(log.PLATFORM)] == [5]
    assert books.breaches() == []
    client = create_app().test_client()
    headers = {"Authorization": f"Bearer {key}"}
    refused = client.get("/v1/platform/events?after=3", headers=headers)
    assert refused.status_code == 400
    assert "after=4" in refused.get_json()["errors"]["after"][0]
    for query in ("", "?after=4"):
        found = client.get(f"/v1/platform/events{query}", headers=headers).get_json()["data"]
        assert [event["sequence"] for event in found["events"]] == [5]
