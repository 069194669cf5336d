"""Who takes part in a run: organizations with a key for each mode, and the pool of recipients they share."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from app import api_keys, organizations, users
from app.ledger.claim import register
from app.ledger.refill import refill
from app.platform import keys as platform_keys

# Recipients of every organization come from one pool, so that sends meet on the same users' rows.
REGISTERED = [f"member{number:03}@example.com" for number in range(240)]
NOT_YET_REGISTERED = [f"guest{number:03}@example.com" for number in range(160)]

_OPENING = {"Large": 10_000_000_000, "Middle": 5_000_000_000, "Small": 20_000, "Probe": 1_000_000_000}


# An operator moves the end of what is held, which is written once.
_LET_TIME_PASS = text("""
    DROP TRIGGER batches_final_once ON batches;
    CREATE TRIGGER batches_final_once
        BEFORE UPDATE OF status, refusal, issued_at, debited_count, debited_amount, current_balance, organization_name,
                         last_refill, cancelled_at ON batches
        FOR EACH ROW WHEN (OLD.status NOT IN ('awaiting_approval', 'scheduled', 'queued'))
        EXECUTE FUNCTION refuse_change();
""")


@dataclass(frozen=True, kw_only=True)
class Party:
    """An organization with a key for each mode."""

    id: int
    name: str
    live: str
    development: str

    def key(self, *, sandbox: bool) -> str:
        return self.development if sandbox else self.live


@dataclass(frozen=True, kw_only=True)
class Parties:
    """The organizations that send, the one whose sends tell that the service is well, and the platform's key."""

    senders: list[Party]
    probe: Party
    platform: str


def make(connection: Connection) -> Parties:
    """Register the members and make the organizations with their opening balances."""
    register(connection, [users.new_user(email, "First", "Last") for email in REGISTERED])
    connection.execute(_LET_TIME_PASS)
    made = {}
    for name, balance in _OPENING.items():
        organization_id, _ = organizations.create(connection, name, sandbox_start_balance=balance)
        for sandbox in (False, True):
            refill(connection, organization_id, balance, sandbox=sandbox)
        organizations.change(connection, organization_id, {"held_days": 1})
        made[name] = Party(
            id=organization_id,
            name=name,
            live=api_keys.create(connection, organization_id, sandbox=False)[1],
            development=api_keys.create(connection, organization_id, sandbox=True)[1],
        )
    _, platform = platform_keys.create(connection, "Platform")
    return Parties(senders=[made["Large"], made["Middle"], made["Small"]], probe=made["Probe"], platform=platform)
