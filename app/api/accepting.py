"""Accepting a group of sends so that the fault of one is no fault of the others."""

from collections.abc import Sequence

from sqlalchemy.exc import SQLAlchemyError

from app import acceptance
from app.acceptance import Acceptance, Send
from app.database import is_away, single_statement


def accept_group(sends: Sequence[Send]) -> list[Acceptance | Exception]:
    """Have PostgreSQL accept a group of sends and return what became of each, in their order: for some, an error.

    Raises nothing that a database or a caller can bring about.
    """
    try:
        with single_statement() as connection:
            outcomes = acceptance.accept(connection, sends)
    except SQLAlchemyError as error:
        if len(sends) == 1 or is_away(error):  # For each of them.
            return [error] * len(sends)
        return _accept_one_by_one(sends)  # One of them is at fault: alone, each gets what it deserves.
    # None: its idempotency key was taken in this moment, and the batch that holds it is there now.
    return [
        accept_group([send])[0] if outcome is None else outcome for send, outcome in zip(sends, outcomes, strict=True)
    ]


def _accept_one_by_one(sends: Sequence[Send]) -> list[Acceptance | Exception]:
    outcomes: list[Acceptance | Exception] = []
    for send in sends:
        [outcome] = accept_group([send])
        outcomes.append(outcome)
        if isinstance(outcome, Exception) and is_away(outcome):  # The rest need not find that out one by one.
            return outcomes + [outcome] * (len(sends) - len(outcomes))
    return outcomes
