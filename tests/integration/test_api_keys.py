"""The rows of API keys: what is stored is not enough to call, and a use is noted without a wait."""

from datetime import datetime
from functools import partial
from typing import NoReturn

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from werkzeug.test import TestResponse

from app import api_keys, kept_answers
from app.api_keys import Caller
from app.encryption import SecretsKeyMissing
from app.platform import keys as platform_keys
from app.postgres.database import transaction
from app.values.key_hashes import hash_key
from app.webhooks.allowed_receivers import ReceiverRefused
from tests.conftest import forget_everything
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")


def _create(organization_id: int, *, sandbox: bool = False) -> tuple[int, str]:
    return books.run(api_keys.create, organization_id, sandbox=sandbox)


def _get_caller(key: str) -> Caller:
    return books.run(api_keys.get_caller, hash_key(key))


def test_what_is_stored_is_not_enough_to_call() -> None:
    _, key = _create(books.make_organization())
    [stored] = books.values("SELECT api_keys::text FROM api_keys")
    secret = key.removeprefix("pts_live_")
    assert secret[:4] in stored
    assert secret[4:8] not in stored
    assert secret.encode().hex()[8:16] not in stored


def test_when_a_key_was_last_used_is_noted_once_a_minute() -> None:
    organization_id = books.make_organization()
    (_, key), _unused = _create(organization_id), _create(organization_id)

    def last_used_at() -> list[datetime | None]:
        with transaction() as connection:
            return [one.last_used_at for one in api_keys.find_all(connection, organization_id)]

    assert last_used_at() == [None, None]
    _get_caller(key)
    first, unused = last_used_at()
    assert first is not None
    assert unused is None
    _get_caller(key)
    assert last_used_at() == [first, None]
    books.execute("UPDATE api_keys SET last_used_at = last_used_at - interval '61 s'")
    _get_caller(key)
    again, _ = last_used_at()
    assert again is not None
    assert again > first


def test_callers_that_come_together_do_not_wait_for_each_other_to_note_the_use() -> None:
    api_key_id, key = _create(books.make_organization())
    with races.started() as start, transaction() as connection:
        assert api_keys.get_caller(connection, hash_key(key)).api_key_id == api_key_id
        assert start(partial(_get_caller, key)).result(timeout=30).api_key_id == api_key_id


def test_an_answer_is_kept_encrypted_for_a_day_and_nothing_is_made_where_it_could_not_be(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization_id, (_, platform) = books.make_organization(), books.run(platform_keys.create, "Billing")

    def make() -> TestResponse:
        headers = {"Authorization": f"Bearer {platform}", "Idempotency-Key": "ann@example.com"}
        body = {"email": "ann@example.com", "first_name": "Ann", "role": "viewer"}
        path = f"/v1/platform/organizations/{organization_id}/members"
        return app.test_client().post(path, json=body, headers=headers)

    monkeypatch.setenv("POINTS_PUBLIC_URL", "https://points.example.com")
    monkeypatch.delenv("POINTS_SECRETS_KEY", raising=False)
    forget_everything()
    answer = make()
    assert answer.status_code == 503
    assert "POINTS_SECRETS_KEY" in answer.text
    assert books.values("SELECT count(*) FROM members") == [0]

    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    forget_everything()
    first = make()
    assert first.status_code == 201
    token = first.text.rpartition("/link/")[2].partition('"')[0]
    kept = str(books.values("SELECT kept_answers::text FROM kept_answers"))
    for readable in ("ann@example.com", b"ann@example.com".hex(), token):
        assert readable not in kept
    for hours, left in ((23, True), (25, False)):
        books.execute(f"UPDATE kept_answers SET created_at = clock_timestamp() - interval '{hours} hours'")
        books.run(kept_answers.forget, at_most=10)
        assert books.values("SELECT count(*) > 0 FROM kept_answers") == [left]
        again = make()
        assert (again.status_code, again.data == first.data) == ((201, True) if left else (409, False))

    books.run(kept_answers.keep, b"x" * 32, None, kept_answers.KeptAnswer(201, None, ""))
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    forget_everything()
    with pytest.raises(SecretsKeyMissing, match="decrypts"):
        books.run(kept_answers.find, b"x" * 32, None)


def test_a_webhook_is_told_again_by_its_key_though_its_name_is_not_found_any_more(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    monkeypatch.setattr("app.webhooks.webhook.resolve", lambda receiver, *, timeout_s: [])
    forget_everything()
    _, key = _create(books.make_organization())
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "once"}

    def make() -> TestResponse:
        return app.test_client().post("/v1/webhooks", json={"url": "https://hook.example.com/"}, headers=headers)

    first = make()
    assert first.status_code == 201

    def resolve(receiver: object, *, timeout_s: float) -> NoReturn:
        raise ReceiverRefused("its name is not found")

    monkeypatch.setattr("app.webhooks.webhook.resolve", resolve)
    assert (make().status_code, make().data) == (201, first.data)
    headers["Idempotency-Key"] = "another"
    assert make().status_code == 400
