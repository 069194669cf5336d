"""The scenes, by the name of the example that each plays."""

import httpx
from sqlalchemy import text

from app.ledger.refill import refill
from tests.deadline import until
from tests.e2e.openapi.scene import Play, Scene

_SUSPEND = text("UPDATE organizations SET is_suspended = true WHERE id = :id")
_DISABLE = text("UPDATE organizations SET is_disabled = true WHERE id = :id")
_LOCK = text("SELECT FROM organizations WHERE id = :id FOR NO KEY UPDATE")


def _suspended(scene: Scene) -> str:
    acme = scene.acme()
    with scene.service.connection() as connection:
        connection.execute(_SUSPEND, {"id": acme.id})
    return acme.live


def _batch_issued(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    batch_id = scene.send(key, scene.body("to_two")).json()["additional_data"]["batch_id"]
    return scene.get(f"/v1/batches/{batch_id}", key)


def _batch_queued(scene: Scene) -> httpx.Response:
    """Read a batch whose drain waits for the organization's row."""
    acme = scene.acme()
    with scene.service.connection() as connection:
        connection.execute(_LOCK, {"id": acme.id})
        return scene.get(_sent_without_waiting(scene, acme.live), acme.live)


def _batch_scheduled(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    return scene.get(scene.send(key, scene.body("later")).headers["Location"], key)


def _batch_moved(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    location = scene.send(key, scene.body("later")).headers["Location"]
    return scene.service.call("PATCH", location, key=key, json=scene.body("tomorrow"))


def _batch_cancelled(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    location = scene.send(key, scene.body("later")).headers["Location"]
    return scene.service.call("POST", f"{location}/cancel", key=key)


def _cancelled(scene: Scene) -> httpx.Response:
    """Send again what was called off."""
    key, headers = scene.acme().live, {"Idempotency-Key": "january"}
    body = scene.body("later")
    location = scene.send(key, body, headers=headers).headers["Location"]
    assert scene.service.call("POST", f"{location}/cancel", key=key).status_code == 200
    return scene.send(key, body, headers=headers)


def _not_scheduled(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    location = scene.send(key, scene.body("to_two")).headers["Location"]
    return scene.service.call("PATCH", location, key=key, json=scene.body("tomorrow"))


def _final(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    location = scene.send(key, scene.body("to_two")).headers["Location"]
    return scene.service.call("POST", f"{location}/cancel", key=key)


def _batch_refused(scene: Scene) -> httpx.Response:
    """Suspend an organization between the front's look and the drain's."""
    acme = scene.acme()
    with scene.service.connection() as connection:
        connection.execute(_LOCK, {"id": acme.id})
        location = _sent_without_waiting(scene, acme.live)
        connection.execute(_SUSPEND, {"id": acme.id})
    until(lambda: scene.get(location, acme.live).json()["data"]["status"] != "queued", within_s=60)
    return scene.get(location, acme.live)


def _sent_without_waiting(scene: Scene, key: str) -> str:
    answer = scene.send(key, scene.body("to_two"), headers={"Prefer": "respond-async"})
    location = answer.headers["Location"]
    assert isinstance(location, str)
    return location


def _key_reused(scene: Scene) -> httpx.Response:
    key, headers = scene.acme().live, {"Idempotency-Key": "january"}
    assert scene.send(key, scene.body("to_one"), headers=headers).status_code == 201
    return scene.send(key, scene.body("to_two"), headers=headers)


def _bad_entries(scene: Scene) -> httpx.Response:
    recipients = [f"ada@{scene.domain}", "nonsense", f"ADA@{scene.domain}"]
    return scene.send(scene.acme().live, {"recipients": recipients, "amount": "50"})


def _issued(scene: Scene, path: str) -> httpx.Response:
    """Read a path after a batch to two; `{first}` in it stands for the id of its first transaction."""
    key = scene.acme().live
    first = scene.send(key, scene.body("to_two")).json()["data"]["transactions"][0]["id"]
    return scene.get(path.format(first=first), key)


def _extended(scene: Scene, **changes: object) -> httpx.Response:
    """Send to somebody without an account, and hold it for longer."""
    key = scene.acme().live
    body = {"recipient": f"grace@{scene.domain}", "amount": 50} | changes
    first = scene.send(key, body).json()["data"]["transactions"][0]["id"]
    return scene.service.call("POST", f"/v1/transactions/{first}/extend", key=key, json=scene.body("longer"))


def _nothing_left(scene: Scene) -> httpx.Response:
    """Verify a batch that was taken back whole."""
    key = scene.acme().live
    path = scene.taking_back(key=key).headers["Location"]
    body = {"batch": scene.get(path, key).json()["data"]["batch_id"], "reason": "The wrong list"}
    return scene.service.call("POST", "/v1/points/reverse/verify", key=key, json=body)


def _reversal_done(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    return scene.get(scene.taking_back(key=key).headers["Location"], key)


def _reversal_queued(scene: Scene) -> httpx.Response:
    """Read a reversal whose drain waits for the organization's row."""
    acme = scene.acme()
    batch_id = scene.send(acme.live, scene.body("to_two")).json()["additional_data"]["batch_id"]
    with scene.service.connection() as connection:
        connection.execute(_LOCK, {"id": acme.id})
        answer = scene.service.call(
            "POST",
            "/v1/points/reverse",
            key=acme.live,
            json=scene.body("take_a_batch") | {"batch": batch_id},
            headers={"Prefer": "respond-async"},
        )
        return scene.get(answer.headers["Location"], acme.live)


def _reversals(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    assert scene.taking_back(key=key).status_code == 201
    return scene.get("/v1/reversals", key)


def _events(scene: Scene) -> httpx.Response:
    """Read the event of a batch to two, as soon as it has its number: it comes after the refill and the two keys."""
    key = scene.acme().live
    assert scene.send(key, scene.body("to_two")).status_code == 201
    _until_numbered(scene, key, 4)
    return scene.get("/v1/events?after=3", key)


def _beyond_the_log(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    _until_numbered(scene, key, 3)
    return scene.get("/v1/events?after=4", key)


def _until_numbered(scene: Scene, key: str, sequence: int) -> None:
    until(lambda: scene.get("/v1/events", key).json()["data"]["last_sequence"] == sequence)


def _disabled(scene: Scene) -> httpx.Response:
    acme = scene.acme()
    batch_id = scene.send(acme.live, scene.body("to_two")).json()["additional_data"]["batch_id"]
    with scene.service.connection() as connection:
        connection.execute(_DISABLE, {"id": acme.id})
    return scene.service.call("POST", "/v1/points/reverse", key=acme.live, json={"batch": batch_id, "reason": "x"})


def _balance_too_large(scene: Scene) -> httpx.Response:
    acme = scene.acme(2**63 - 1)
    batch_id = scene.send(acme.live, scene.body("to_two")).json()["additional_data"]["batch_id"]
    with scene.service.connection() as connection:
        refill(connection, acme.id, 100)
    return scene.service.call("POST", "/v1/points/reverse", key=acme.live, json={"batch": batch_id, "reason": "x"})


def _sandbox_reset(scene: Scene) -> httpx.Response:
    key = scene.acme().development
    assert scene.send(key, scene.body("to_two")).status_code == 201
    return scene.service.call("POST", "/v1/sandbox/reset", key=key)


def _webhook_not_enabled(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    path = scene.webhook(key)
    assert scene.service.call("POST", f"{path}/disable", key=key).status_code == 200
    return scene.service.call("POST", f"{path}/ping", key=key)


def _webhook_stuck(scene: Scene) -> tuple[str, str]:
    """Have a webhook fail at a ping, since nobody listens; return its path and the key."""
    key = scene.acme().live
    path = scene.webhook(key)
    assert scene.service.call("POST", f"{path}/ping", key=key).status_code == 200
    until(lambda: scene.get(path, key).json()["data"]["failures"] == 1, within_s=30)
    return path, key


def _webhook_moved_on(scene: Scene) -> httpx.Response:
    path, key = _webhook_stuck(scene)
    return scene.service.call("POST", f"{path}/skip", key=key)


def _deliveries(scene: Scene) -> httpx.Response:
    path, key = _webhook_stuck(scene)
    return scene.get(f"{path}/deliveries", key)


def _webhooks(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    scene.webhook(key)
    return scene.get("/v1/webhooks", key)


def _too_many_webhooks(scene: Scene) -> httpx.Response:
    key = scene.acme().live
    for _ in range(10):
        scene.webhook(key)
    return scene.service.call("POST", "/v1/webhooks", key=key, json=scene.body("new_webhook"))


def _as_text(scene: Scene) -> httpx.Response:
    headers = {"Content-Type": "text/plain"}
    return scene.service.call("POST", "/v1/points/send", key=scene.acme().live, content=b"50", headers=headers)


SCENES: dict[str, Play] = {
    "possible": lambda scene: scene.verify(scene.acme().live, scene.body("to_two")),
    "balance_too_low": lambda scene: scene.verify(scene.acme(60).live, scene.body("to_two")),
    "may_not_issue": lambda scene: scene.verify(_suspended(scene), scene.body("to_two")),
    "issued": lambda scene: scene.send(scene.acme().live, scene.body("to_two")),
    "issued_in_part": lambda scene: scene.send(scene.acme(60).live, scene.body("to_two")),
    "issued_to_each": lambda scene: scene.send(scene.acme().live, scene.body("to_each")),
    "queued": lambda scene: scene.send(scene.acme().live, scene.body("to_two"), headers={"Prefer": "respond-async"}),
    "batch_issued": _batch_issued,
    "batch_queued": _batch_queued,
    "scheduled": lambda scene: scene.send(scene.acme().live, scene.body("later")),
    "batch_scheduled": _batch_scheduled,
    "batch_moved": _batch_moved,
    "batch_cancelled": _batch_cancelled,
    "cancelled": _cancelled,
    "not_scheduled": _not_scheduled,
    "final": _final,
    "batch_refused": _batch_refused,
    "batches": lambda scene: _issued(scene, "/v1/batches"),
    "transactions": lambda scene: _issued(scene, "/v1/transactions"),
    "transaction": lambda scene: _issued(scene, "/v1/transactions/{first}"),
    "extended": lambda scene: _extended(scene, hold_days=90),
    "cannot_extend": _extended,
    "would_come_back": lambda scene: scene.taking_back(path="/v1/points/reverse/verify"),
    "nothing_left": _nothing_left,
    "taken_back": lambda scene: scene.taking_back(),
    "taken_in_part": lambda scene: scene.taking_back("take_transactions"),
    "reversal_waits": lambda scene: scene.taking_back(headers={"Prefer": "respond-async"}),
    "reversals": _reversals,
    "reversal_done": _reversal_done,
    "reversal_queued": _reversal_queued,
    "no_reversal": lambda scene: scene.get("/v1/reversals/1", scene.acme().live),
    "disabled": _disabled,
    "balance_too_large": _balance_too_large,
    "events": _events,
    "beyond_the_log": _beyond_the_log,
    "webhook_made": lambda scene: scene.service.call(
        "POST", "/v1/webhooks", key=scene.acme().live, json=scene.body("new_webhook")
    ),
    "webhooks": _webhooks,
    "webhook": lambda scene: scene.of_webhook("GET"),
    "webhook_changed": lambda scene: scene.of_webhook("PATCH", json=scene.body("changed_webhook")),
    "webhook_pinged": lambda scene: scene.of_webhook(more="/ping"),
    "webhook_rotated": lambda scene: scene.of_webhook(more="/rotate"),
    "webhook_disabled": lambda scene: scene.of_webhook(more="/disable"),
    "webhook_enabled": lambda scene: scene.of_webhook(more="/enable"),
    "webhook_moved_back": lambda scene: scene.of_webhook(more="/replay", json=scene.body("from_the_first")),
    "webhook_moved_on": _webhook_moved_on,
    "deliveries": _deliveries,
    "too_many_webhooks": _too_many_webhooks,
    "no_webhook": lambda scene: scene.get("/v1/webhooks/1", scene.acme().live),
    "webhook_not_enabled": _webhook_not_enabled,
    "not_stuck": lambda scene: scene.of_webhook(more="/skip"),
    "sandbox_reset": _sandbox_reset,
    "bad_query": lambda scene: scene.get(
        "/v1/transactions?create_from=x&limit=0&email=ada&debited=yes", scene.acme().live
    ),
    "live_key": lambda scene: scene.service.call("POST", "/v1/sandbox/reset", key=scene.acme().live),
    "no_transaction": lambda scene: scene.get("/v1/transactions/131072", scene.acme().live),
    "organization": lambda scene: scene.get("/v1/organization", scene.acme().live),
    "alive": lambda scene: scene.get("/healthz"),
    "ready": lambda scene: scene.get("/readyz"),
    "everything_missing": lambda scene: scene.send(scene.acme().live, {}),
    "bad_entries": _bad_entries,
    "unknown_field": lambda scene: scene.send(scene.acme().live, scene.body("to_one") | {"atomc": True}),
    "no_query": lambda scene: scene.get("/v1/organization?limit=1", scene.acme().live),
    "no_key": lambda scene: scene.send(None, scene.body("to_two")),
    "suspended": lambda scene: scene.send(_suspended(scene), scene.body("to_two")),
    "no_batch": lambda scene: scene.get("/v1/batches/1", scene.acme().live),
    "wrong_method": lambda scene: scene.get("/v1/points/send"),
    "too_large": lambda scene: scene.send(scene.acme().live, {"label": "a" * 8_388_608}),
    "wrong_type": _as_text,
    "key_reused": _key_reused,
}
