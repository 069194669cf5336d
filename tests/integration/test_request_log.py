"""What a web process keeps of its calls: bounded, written in bulk by one thread, lost only where that is counted."""

import time
from collections import Counter
from collections.abc import MutableMapping
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import request_log
from app.pages import lists
from app.pages.filters import Filters
from app.postgres.database import transaction
from app.request_log import FULL, NOT_WRITTEN, Call, Keeping, drop_old_requests
from app.settings import settings
from app.values.key_hashes import hash_key
from app.web import recording
from app.web.application import create_app
from tests.conftest import forget_everything
from tests.deadline import until
from tests.integration import books
from tests.integration.visitors import visitor, words_of
from tests.unit.answers import data_of, errors_of

pytestmark = pytest.mark.usefixtures("database")

ACME = Filters(organization_id=1, sandbox=False)


@pytest.fixture
def key() -> str:
    return books.make_live_key(books.make_organization())


@pytest.fixture
def lost() -> Counter[str]:
    return Counter()


@pytest.fixture
def kept(lost: Counter[str]) -> Keeping:
    def count(reason: str, calls: int) -> None:
        lost[reason] += calls

    return Keeping(count)


def call(key: str, request_id: str = "r", **changed: Any) -> Call:
    made = Call(hash_key(key), request_id, time.time(), "GET", "/v1/batches", 200, None, None, 1)
    return made._replace(**changed)


def listed(**looked_at: Any) -> list[str]:
    page = books.run(lists.requests, ACME, start=None, limit=1_000, **looked_at)
    return [row.request_id for row in page.rows]


def rows_stored() -> int:
    return int(books.value("SELECT count(*) FROM api_requests"))


def test_what_finds_no_room_is_lost_and_counted_and_a_key_that_nobody_has_is_nobodys(
    key: str, kept: Keeping, lost: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "KEPT_MAX", 3)
    for number in range(5):
        kept.keep(call(key if number else "pts_live_of_nobody", str(number)))
    assert lost == {FULL: 2}
    kept.write()
    assert sorted(listed()) == ["1", "2"]
    kept.keep(call(key, "again"))
    kept.write()
    assert "again" in listed(), "there is room again"


def test_of_what_a_key_is_refused_at_the_door_only_the_first_is_kept_until_the_next_writing(
    key: str, kept: Keeping, lost: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        for number in range(request_log.KEPT_MAX):
            kept.keep(call(key, str(number), status=429, code="rate_limited"))
        kept.write()
    assert listed() == ["0", "0"]
    monkeypatch.setattr(request_log, "_AT_THE_DOOR_MAX", 3)
    for number in range(5):  # Of keys that nobody has, too.
        kept.keep(call(f"pts_live_{number}", status=401))
    kept.keep(call(key, "served"))
    assert lost == {FULL: 2}
    kept.write()
    assert rows_stored() == 3


def test_without_postgresql_calls_are_lost_and_counted_and_told_once(
    key: str,
    kept: Keeping,
    lost: Counter[str],
    events: list[MutableMapping[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
        forget_everything()
        for _ in range(2):
            kept.keep(call(key))
            kept.write()
    forget_everything()
    assert lost == {NOT_WRITTEN: 2}
    assert [event["event"] for event in events] == ["requests_not_written"]
    kept.keep(call(key, "later"))
    kept.write()
    assert listed() == ["later"]


def test_a_thread_writes_by_itself_and_what_is_kept_at_the_stop_is_written_too(
    key: str, kept: Keeping, lost: Counter[str]
) -> None:
    kept.start()
    kept.keep(call(key, "by itself"))
    until(lambda: listed() == ["by itself"], "the thread writes")
    kept.keep(call(key, "at the stop"))
    kept.stop()
    assert listed() == ["at the stop", "by itself"]
    assert lost == {FULL: 0, NOT_WRITTEN: 0}, "both are shown, as 0"


def test_a_request_writes_nothing_itself_and_keeps_what_it_was(key: str) -> None:
    recording.request_log.write()  # What other tests have called.
    client: FlaskClient = create_app().test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    data_of(client.get("/v1/organization", headers={"X-Request-Id": "seen"}), 200)
    errors_of(client.get("/v1/nowhere", headers={"X-Request-Id": "unknown"}), 404)
    data_of(client.get("/healthz", headers={"X-Request-Id": "a probe"}), 200)
    assert rows_stored() == 0
    recording.request_log.write()
    assert sorted(listed()) == ["seen", "unknown"]


def test_a_setting_keeps_no_call(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recording.request_log.write()  # What other tests have called.
    stored = rows_stored()
    monkeypatch.setenv("POINTS_REQUEST_LOG", "false")
    settings.cache_clear()
    client: FlaskClient = create_app().test_client()
    data_of(client.get("/v1/organization", headers={"Authorization": f"Bearer {key}"}), 200)
    recording.request_log.write()
    assert rows_stored() == stored


def test_calls_are_hidden_after_30_days_and_dropped_in_steps(key: str, kept: Keeping) -> None:
    for number in range(5):
        days = 31 if number < 3 else 29
        kept.keep(call(key, str(number), created_at=time.time() - days * 86_400 - number))
    kept.write()
    assert listed() == ["3", "4"]
    steps = []
    for _ in range(3):
        with transaction() as connection:
            steps.append(drop_old_requests(connection, at_most=2))
    assert steps == [2, 1, 0]
    assert rows_stored() == 2


def test_a_page_looks_at_a_bounded_number_of_rows(key: str, kept: Keeping) -> None:
    books.execute(
        "INSERT INTO api_requests (organization_id, sandbox, api_key_id, created_at, request_id, method, status, ms)"
        " SELECT 1 + mod(n, 2), false, 1, now() - n * interval '1 second', n::text, 'GET', 200, 1"
        " FROM generate_series(1, 24000) n",
        "ANALYZE api_requests",
    )
    nobody = Filters(organization_id=1, sandbox=False, equals={"request_id": "none"})
    with transaction() as connection:
        first = lists.requests(connection, nobody, start=None, limit=10)
        assert (first.rows, first.next is None) == ([], False), "it looks no further than it may"
        far = lists.requests(connection, nobody, start=None, limit=10, is_far=True)
        assert (far.rows, far.next) == ([], None)
        one = Filters(organization_id=1, sandbox=False, equals={"request_id": "20000"})
        assert [row.request_id for row in lists.requests(connection, one, start=None, limit=10, is_far=True).rows]


def test_a_viewer_finds_a_call_in_the_console_by_what_is_known_of_it(key: str, kept: Keeping) -> None:
    kept.keep(call(key, "refused-one", status=403, code="organization_suspended", route=None))
    kept.keep(call(key, "sent-one", method="POST", route="/v1/points/send", status=201, batch_id=7))
    kept.write()
    viewer = visitor(create_app(), 1, "viewer")
    everything = words_of(viewer.get("/requests"))
    assert "organization_suspended" in everything
    assert "POST /v1/points/send" in everything
    for query, found, left_out in (("status=4xx", "refused", "sent"), ("batch=7&api_key=1", "sent", "refused")):
        page = words_of(viewer.get(f"/requests?{query}"))
        assert f"{found}-one" in page
        assert f"{left_out}-one" not in page
    assert "No call matches" in words_of(viewer.get("/requests?request_id=none"))
    assert "must be 1 to 128 letters" in words_of(viewer.get("/requests?request_id=a+b"))
    assert "-one" not in words_of(viewer.get("/console/sandbox/requests"))


def test_the_console_names_the_fields_at_fault_and_none_that_a_caller_has_made_up(key: str) -> None:
    app, headers = create_app(), {"Authorization": f"Bearer {key}"}
    for body in (
        {"recipients": ["x"], "amount": "5", "eve@example.com": 1},
        {"eve@example.com": 1, "recipient": "a@b.org", "amount": 1},
    ):
        assert app.test_client().post("/v1/points/verify", json=body, headers=headers).status_code == 400
    recording.request_log.write()
    page = words_of(visitor(app, 1, "viewer").get("/requests"))
    for said in ("400 at fault: recipients.0, amount, 1 more", "400 at fault: 1 unknown name"):
        assert said in page
    assert "eve@" not in page
