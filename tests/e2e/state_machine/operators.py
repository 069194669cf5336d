"""What operators do, by the functions their commands call; the model is told of it."""

from dataclasses import dataclass

from sqlalchemy import Engine, text

from app import api_keys, organizations, users
from app.ledger.claim import register
from app.ledger.refill import refill
from app.ledger.returns import due_returns, return_held
from app.values.timestamps import timestamp
from tests.e2e.state_machine.model import Model, Organization, key_of

# It is written once, and a trigger sees to that.
_TRIGGER = "ALTER TABLE batches {} TRIGGER batches_final_once"
_END = text("""
    UPDATE batches SET held_until = clock_timestamp(), return_at = clock_timestamp()
    WHERE id = :id AND return_at IS NOT NULL
""")


@dataclass(frozen=True)
class Key:
    """An API key and what it stands for."""

    id: int
    text: str
    organization: Organization
    sandbox: bool


class Operators:
    """The operators of one run; `organizations` are those that they made in it."""

    def __init__(self, engine: Engine, model: Model) -> None:
        self.engine, self.model = engine, model
        self.organizations: list[Organization] = []

    def create_organization(self, points: int) -> Organization:
        """Make an organization with the same opening balance in both modes."""
        name = f"Acme {points}"
        with self.engine.begin() as connection:
            id_ = organizations.create(connection, name, sandbox_start_balance=0)
            created_at = timestamp(organizations.get(connection, id_, sandbox=False).created_at)
        organization = Organization(id_, name, created_at)
        self.organizations.append(organization)
        for sandbox in (False, True):
            if points:
                self.refill(organization, points, sandbox=sandbox)
        return organization

    def refill(self, organization: Organization, points: int, *, sandbox: bool) -> None:
        self.model.refill(organization, points, sandbox=sandbox)
        with self.engine.begin() as connection:
            balance = refill(connection, organization.id, points, sandbox=sandbox)
        assert balance == organization.purses[sandbox].balance

    def set_flags(self, organization: Organization, **flags: bool) -> None:
        with self.engine.begin() as connection:
            organizations.change(connection, organization.id, flags)
        for flag, on in flags.items():
            setattr(organization, flag, on)

    def set_held_days(self, organization: Organization, days: int | None) -> None:
        with self.engine.begin() as connection:
            organizations.change(connection, organization.id, {"held_days": days})

    def end(self, batch_id: int) -> None:
        """Let the end of a batch come, and return what is unclaimed, unless the service's own return is faster."""
        with self.engine.begin() as connection:
            connection.execute(text(_TRIGGER.format("DISABLE")))
            connection.execute(_END, {"id": batch_id})
            connection.execute(text(_TRIGGER.format("ENABLE")))
        due = True
        while due:
            with self.engine.begin() as connection:
                step = [one for one in due_returns(connection, at_most=1_000) if one.batch_id == batch_id]
                due = bool(step) and return_held(connection, step) is None
        self.model.give_back(self.model.batches[batch_id])

    def new_key(self, organization: Organization, *, sandbox: bool) -> Key:
        with self.engine.begin() as connection:
            return Key(*api_keys.create(connection, organization.id, sandbox=sandbox), organization, sandbox)

    def revoke(self, key: Key) -> None:
        with self.engine.begin() as connection:
            api_keys.revoke(connection, key.id)

    def register(self, email: str) -> None:
        """Register a user; an address that is registered, however it is written, stays whose it is."""
        with self.engine.begin() as connection:
            ids = register(connection, [users.new_user(email, "Ada", "Lovelace")]).user_ids
        assert bool(ids) == (key_of(email) not in self.model.users)
        if ids:
            self.model.register(email, {"id": ids[0], "first_name": "Ada", "last_name": "Lovelace"})
        self.compare_user(key_of(email))

    def compare_user(self, email_key: str) -> None:
        with self.engine.begin() as connection:
            user = users.get(connection, email_key)
        shown = {"id": user.id, "first_name": user.first_name, "last_name": user.last_name}
        assert shown == self.model.users[email_key]
        assert user.balance == self.model.credits[email_key]
