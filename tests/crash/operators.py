"""An operator: a thread that refills, registers, suspends and resumes while callers send."""

import contextlib
import random
import time

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from app import organizations, users
from app.errors import Refused
from app.ledger.claim import register
from app.ledger.held_list import exclude_claims
from app.ledger.refill import refill
from tests.crash.actor import Actor
from tests.crash.parties import NOT_YET_REGISTERED, Parties

_ACTS_EVERY_S = (0.05, 0.5)
_SUSPENDED_FOR_S = (0.05, 0.4)
_ON_TIME_S = 600


_OFF_S = text("SELECT abs(extract(epoch FROM clock_timestamp()) - :now)")
_LOCK = text("SELECT FROM organizations WHERE id = :id FOR NO KEY UPDATE")
_END = text("""
    UPDATE batches SET held_until = now, return_at = least(return_at, now)
    FROM (SELECT clock_timestamp() AS now) clock
    WHERE organization_id = :id AND held_until > now
      -- What was claimed while the clock was ahead was claimed in time.
      AND NOT EXISTS (SELECT FROM transactions t WHERE t.batch_id = batches.id AND t.claimed_at >= now)
""")


class Operator(Actor):
    """Acts on the same rows as the sends, by the same functions as the commands."""

    def __init__(self, seed: str, engine: Engine, parties: Parties) -> None:
        self._random = random.Random(f"{seed} operator")  # noqa: S311  # It is to be repeated, not secret.
        super().__init__("operator", lambda: self._random.uniform(*_ACTS_EVERY_S))
        self._engine = engine
        self._parties = parties
        self._to_register = list(NOT_YET_REGISTERED)
        self._random.shuffle(self._to_register)
        self._suspended: set[int] = set()

    def run(self) -> None:
        super().run()
        self._resume_all()

    def act(self) -> None:
        acts = (self._refill, self._refill, self._register, self._register, self._suspend, self._end)
        with contextlib.suppress(SQLAlchemyError):  # PostgreSQL is away; whatever it was, it is one transaction.
            self._random.choice(acts)()

    def _refill(self) -> None:
        party = self._random.choice(self._parties.senders)
        amount, sandbox = self._random.randint(1, 5_000), self._random.random() < 0.3
        with self._engine.begin() as connection, contextlib.suppress(Refused):
            refill(connection, party.id, amount, sandbox=sandbox)

    def _register(self) -> None:
        if not self._to_register:
            return
        emails = self._to_register[-self._random.randint(1, 3) :]
        with self._engine.begin() as connection:
            # One whose registration crosses an issue while the clock is behind is found by the hourly search alone.
            if connection.execute(_OFF_S, {"now": time.time()}).scalar_one() > _ON_TIME_S:
                return
            register(connection, [users.new_user(email, "Late", "Guest") for email in emails])
        del self._to_register[-len(emails) :]

    def _end(self) -> None:
        """Let the end of all that an organization has held come now, under the locks that a return takes."""
        party = self._random.choice(self._parties.senders)
        with self._engine.begin() as connection:
            connection.execute(_LOCK, {"id": party.id})
            exclude_claims(connection, party.id)
            connection.execute(_END, {"id": party.id})

    def _suspend(self) -> None:
        party = self._random.choice(self._parties.senders)
        self._suspended.add(party.id)
        with self._engine.begin() as connection:
            organizations.change(connection, party.id, {"is_suspended": True})
        self._stopping.wait(self._random.uniform(*_SUSPENDED_FOR_S))
        self._resume_all()

    def _resume_all(self) -> None:
        """Resume whatever is suspended, until the database has heard it."""
        while self._suspended:
            try:
                with self._engine.begin() as connection:
                    for organization_id in sorted(self._suspended):
                        organizations.change(connection, organization_id, {"is_suspended": False})
                self._suspended.clear()
            except SQLAlchemyError:
                time.sleep(0.1)
