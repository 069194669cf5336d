"""The demo organization of a first start, its users and its first batch, made over HTTP as by any caller."""

import json
from typing import Any

from app import api_keys, organizations
from app.cli.operator_command import by_operator
from app.ledger import sandbox
from app.ledger.refill import open_organization
from app.local.datadir import DataDir
from app.members import links, members
from app.platform import keys as platform_keys
from app.postgres.database import single_statement, transaction
from app.settings import settings
from app.users import new_user
from app.values.numbers import points

_FILE = "demo.json"
_BALANCE = 100_000
_AMOUNT = 50
_MEMBER = "admin@example.com"
_RECIPIENTS = ("ada@example.com", "grace@example.com", "linus@example.com")
# The first call that we print reaches the first of them, and somebody whose points are held.
_OF_SANDBOX = ((_RECIPIENTS[0], "Ada", "Lovelace"), (_RECIPIENTS[2], "Linus", "Pauling"))

Keys = dict[str, str]


def prepare(datadir: DataDir, web_url: str) -> tuple[Keys | None, list[str]]:
    """On the first start, make the demo organization with a member, and issue its first batch.

    Returns its keys (None if the database has organizations but not this demo) and the lines about the batch, and about
    the member's link until a password is chosen. The keys are kept in the data directory, because the database has only
    hashes.
    """
    with single_statement() as connection:
        is_first_start = not organizations.find_all(connection, sandbox=False)
        known = {} if is_first_start else datadir.read(_FILE)
        if known and not api_keys.was_made(connection, known["live"]):
            known = {}  # The demo is another database's.
    if not is_first_start:
        new = _new_token(known) if known else None
        return known or None, [] if new is None else _about_link(web_url, new)
    keys, token = _make_organization()
    datadir.write(_FILE, keys)
    return keys, [*_first_batch(web_url, keys), *_about_link(web_url, token)]


def _about_link(web_url: str, token: str) -> list[str]:
    says = f"The console: choose a password for {_MEMBER} with this link, good once and for 24 hours:"
    return [says, f"  {links.link_to(token, url=settings().public_url or web_url)}", ""]


def _new_token(keys: Keys) -> str | None:
    """Return the token of a new link for the demo's member; None: a password is chosen, or the member is gone."""
    with transaction(by=by_operator()) as connection:
        for member in members.find_all(connection, int(keys["organization_id"])):
            if member.email == _MEMBER and not member.has_password:
                return links.make_link(connection, members.lock(connection, member.id), by=None)
    return None


def describe(keys: Keys, first_batch: list[str], web_url: str) -> list[str]:
    """Return the lines that show the keys, and calls that can be pasted."""
    lines = [
        *first_batch,
        f"The demo organization is {keys['organization_id']}. Its keys:",
        f"  development  {keys['development']}   (sandbox: nothing it does is real)",
        f"  live         {keys['live']}",
        *([f"The platform's own programs call with {keys['platform']}"] if "platform" in keys else ()),
        "",
        f"The sandbox has users of its own: {' and '.join(email for email, *_ in _OF_SANDBOX)}.",
        "Paste these lines into another terminal, to verify and to send there:",
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
    with transaction(by=by_operator()) as connection:
        start = settings().sandbox_balance
        organization_id = open_organization(connection, "Demo", balance=_BALANCE, sandbox_balance=start)[0].id
        for user in _OF_SANDBOX:
            sandbox.register(connection, organization_id, new_user(*user))
        _, token = links.add(connection, organization_id, _MEMBER, "Mary", "Jackson", role=members.ADMIN, by=None)
        _, live = api_keys.create(connection, organization_id, sandbox=False)
        _, development = api_keys.create(connection, organization_id, sandbox=True)
        _, platform = platform_keys.create(connection, "Demo")
    keys = {"organization_id": str(organization_id), "live": live, "development": development, "platform": platform}
    return keys, token


def _body(recipients: int) -> dict[str, Any]:
    """Make the body of a send, within the limits that are set."""
    limits = settings()
    return {
        "recipients": list(_RECIPIENTS[: min(recipients, limits.recipients_max)]),
        "amount": min(_AMOUNT, limits.amount_max),
    }


def _first_batch(web_url: str, keys: Keys) -> list[str]:
    import points_client  # noqa: PLC0415  # Only a first start needs it, and it takes a quarter of a second.

    body = _body(len(_RECIPIENTS))
    try:
        with (
            points_client.PlatformPoints(keys["platform"], web_url, patience_s=0) as platform,
            points_client.Points(keys["live"], web_url, patience_s=0) as service,
        ):
            platform.users.register(_RECIPIENTS[0], "Ada", "Lovelace")
            verified = service.verify(**body)
            sent = service.send(**body, wait_s=settings().wait_s + 10)
            grace = platform.users.register(_RECIPIENTS[1], "Grace", "Hopper")
    except points_client.PointsError as error:
        # For example, a rate limit of one call a day. The service runs, and the keys exist.
        return [f"A first batch was not issued: {error}", ""]
    lines = [
        "A first batch, verified and issued over HTTP:",
        f"  POST /v1/points/verify  200  validated {json.dumps(verified.validated)}",
        f"  POST /v1/points/send    {201 if sent.transactions else 202}  batch {sent.batch_id}",
    ]
    for row in sent.transactions:
        outcome = "credited" if row.credited else "held until an account is registered"
        lines.append(f"    transaction {row.id}  {row.email:<18} {row.amount} points, {outcome}")
    if sent.current_balance is not None:
        lines.append(f"    current balance {points(sent.current_balance)}")
    if grace.claimed is not None:
        lines.append(f"  POST /v1/platform/users 201  {grace.email} signs up: {grace.claimed.amount} points, credited")
    return [*lines, ""]
