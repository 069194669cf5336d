"""The demo organization of a first start, and its first batch, sent over HTTP as by any caller."""

import json
from typing import Any

from app import api_keys, organizations, users
from app.cli.members import link_to
from app.ledger.claim import register
from app.ledger.refill import refill
from app.local.datadir import DataDir
from app.members import members
from app.postgres.database import transaction
from app.settings import settings
from app.values.numbers import points

_FILE = "demo.json"
_BALANCE = 100_000
_AMOUNT = 50
_MEMBER = "admin@example.com"
_RECIPIENTS = ("ada@example.com", "grace@example.com", "linus@example.com")

Keys = dict[str, str]


def prepare(datadir: DataDir, web_url: str) -> tuple[Keys | None, list[str]]:
    """On the first start, make the demo organization with a member, and issue its first batch.

    Returns its keys (None if the database has organizations but not this demo) and the lines about the batch and the
    member's link, which is shown once. The keys are kept in the data directory, because the database has only hashes.
    """
    with transaction() as connection:
        is_first_start = not organizations.find_all(connection, sandbox=False)
    if is_first_start:
        keys, token = _make_organization()
        datadir.write(_FILE, keys)
        link = [
            f"The console: choose a password for {_MEMBER} with this link, good once and for 24 hours:",
            f"  {link_to(web_url, token)}",
            "",
        ]
        return keys, _first_batch(web_url, keys["live"]) + link
    return datadir.read(_FILE) or None, []


def describe(keys: Keys, first_batch: list[str], web_url: str) -> list[str]:
    """Return the lines that show the keys, and calls that can be pasted."""
    lines = [
        *first_batch,
        f"The demo organization is {keys['organization_id']}. Its keys:",
        f"  development  {keys['development']}   (sandbox: nothing it does is real)",
        f"  live         {keys['live']}",
        "",
        "Paste these lines into another terminal, to verify and to send:",
        f"  export KEY={keys['development']}",
    ]
    for operation in ("verify", "send"):
        lines += [
            f'  curl -i {web_url}/v1/points/{operation} -H "Authorization: Bearer $KEY" \\',
            "    -H 'Accept: application/json' -H 'Content-Type: application/json' \\",
            f"    -d '{json.dumps(_body(2))}'",
        ]
    return lines


def _make_organization() -> tuple[Keys, str]:
    """Make the demo organization; return its keys, and the token of its member's link."""
    with transaction() as connection:
        start = settings().sandbox_balance
        organization_id = organizations.create(connection, "Demo", sandbox_start_balance=start)
        refill(connection, organization_id, _BALANCE)
        if start:
            refill(connection, organization_id, start, sandbox=True)
        register(connection, [users.new_user(_RECIPIENTS[0], "Ada", "Lovelace")])
        _, token = members.create(connection, organization_id, _MEMBER, "Mary", "Jackson", role=members.ADMIN, by=None)
        _, live = api_keys.create(connection, organization_id, sandbox=False)
        _, development = api_keys.create(connection, organization_id, sandbox=True)
    return {"organization_id": str(organization_id), "live": live, "development": development}, token


def _body(recipients: int) -> dict[str, Any]:
    """Make the body of a send, within the limits that are set."""
    limits = settings()
    return {
        "recipients": list(_RECIPIENTS[: min(recipients, limits.recipients_max)]),
        "amount": min(_AMOUNT, limits.amount_max),
    }


def _first_batch(web_url: str, key: str) -> list[str]:
    import points_client  # noqa: PLC0415  # Only a first start needs it, and it takes a quarter of a second.

    body = _body(len(_RECIPIENTS))
    try:
        with points_client.Points(key, web_url, patience_s=0) as service:
            verified = service.verify(**body)
            sent = service.send(**body, wait_s=settings().wait_s + 10)
    except points_client.PointsError as error:
        # For example, a rate limit of one call a day. The service runs, and the keys exist.
        return [f"A first batch was not issued: {error}", ""]
    lines = ["A first batch, verified and issued over HTTP:"]
    lines.append(f"  POST /v1/points/verify  200  validated {json.dumps(verified.validated)}")
    lines.append(f"  POST /v1/points/send    {201 if sent.transactions else 202}  batch {sent.batch_id}")
    for transaction_sent in sent.transactions:
        outcome = "credited" if transaction_sent.credited else "held until an account is registered"
        lines.append(
            f"    transaction {transaction_sent.id}  {transaction_sent.email:<18}"
            f" {transaction_sent.amount} points, {outcome}"
        )
    if sent.current_balance is not None:
        lines.append(f"    current balance {points(sent.current_balance)}")
    return [*lines, ""]
