"""What a statement says about one organization, it says by the organization's id: no row of another is looked at."""

import re
from typing import Any, cast

import pytest
from sqlalchemy import Connection

from app.exports import columns
from app.exports.sources import Source
from app.pages import batch_pages, far, platform_pages, reversal_pages, transaction_pages
from app.pages.filters import Filters, Page
from tests.unit.statements import of_modules

_LEDGER = (
    "batches|transactions|held_transactions|user_balances|unfolded_batches|unfolded_claims|user_entries|refills|reversals"
    "|reversal_entries|daily_sums"
)
_NAMES_THE_LEDGER = re.compile(rf"\b(?:FROM|JOIN|INTO|UPDATE) (?:{_LEDGER})\b")
# An equality, or a row that begins with the organization and is compared with one that does.
_OF_ONE = re.compile(r"\borganization_id = (?!ANY)|\(organization_id, [^:%]*[:%]\(?organization_id")

OF_SEVERAL = {
    "app.batches.accept:_ACCEPT": "accepts the sends of several callers at once",
    "app.batches.accept:_ACCEPT_BOUNDED": "the same, within the limits of keys",
    "app.batches.accept:_LOOK": "the same, looking only",
    "app.batches.schedule:_RELEASE_DUE": "releases what is due, of all",
    "app.batches.unanswered:_LOCK_ONE_LATE": "finds an organization with a batch that nobody answered",
    "app.ledger.returns:_DUE": "finds what is due, of all",
    "app.ledger.refill:_WRITE": "writes a new refill, with its organization",
    "app.reversals.accept:_ACCEPT": "writes a new reversal, with its organization",
    "app.batches.queue:_COUNT": "counts what all have queued, for monitoring",
    "app.batches.queue:_ORGANIZATIONS_WAITING": "finds who has waited too long",
    "app.batches.read:_FINAL_AMONG": "reads the outcomes for which a process waits, of all its callers",
    "app.batches.read:_FORGET_IDEMPOTENCY_KEYS": "forgets the oldest keys of all",
    "app.reversals.read:_FORGET_IDEMPOTENCY_KEYS": "forgets the oldest keys of all",
    "app.batches.schedule:_COUNT": "counts what all have scheduled, for monitoring",
    "app.erasing.issued:_WAITING": "looks for a person at many organizations",
    "app.ledger.claim:_NEW_USERS_WITH_HELD": "finds users for whom anybody holds points",
    "app.ledger.claim:_USERS_WITH_HELD": "finds users for whom anybody holds points",
    "app.ledger.fold:_LOCK_ONE_OF_CLAIMS": "finds an organization with claims to fold",
    "app.ledger.fold:_WAIT_LONGEST": "finds the organizations with batches to fold",
    "app.ledger.held:_LIST": "lists what all hold in a full partition",
    "app.ledger.holders:_HOLDERS": "finds the organizations that hold points for some addresses",
}


def test_each_statement_of_the_ledger_is_of_one_organization_or_known_to_be_of_several() -> None:
    of_ledger = {name: one for name, one in of_modules().items() if _NAMES_THE_LEDGER.search(one)}
    assert len(of_ledger) > 80
    assert {name for name, one in of_ledger.items() if not _OF_ONE.search(one)} <= set(OF_SEVERAL)
    assert set(OF_SEVERAL) <= set(of_ledger), "each that is excepted is there"


class _Recorder:
    """A connection that finds nothing, and keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def execute(self, statement: Any, _parameters: Any = None) -> Any:
        self.asked.append(" ".join(str(statement).split()))
        return self

    def __iter__(self) -> Any:
        return iter(())

    def one_or_none(self) -> None:
        return None


_FILTERS = [
    Filters(organization_id=7, sandbox=False, **asked)
    for asked in cast(
        list[dict[str, Any]],
        [
            *({}, {"email_key": "ann@example.com"}, {"batch_id": 1}, {"reference": "a"}, {"debited": False}),
            *({"credited": True}, {"state": "held"}, {"idempotency_key": "once"}, {"email_part": "ann"}),
            {"email_key": "ann@example.com", "credited": False},
        ],
    )
]


@pytest.mark.parametrize("filters", _FILTERS, ids=str)
def test_each_list_and_its_file_are_read_of_one_organization(filters: Filters) -> None:
    recorder = _Recorder()
    connection = cast(Connection, recorder)
    for page in (batch_pages.page, transaction_pages.page, reversal_pages.page, platform_pages.refills):
        found = page(connection, filters, start=None, limit=10)
        assert isinstance(found, Page)
    asked = [one for one in recorder.asked if _NAMES_THE_LEDGER.search(one)]
    asked += [" ".join(far.rows_found(filters, None).split()), " ".join(far._totals(filters).split())]
    for kind in (columns.TRANSACTIONS, columns.BATCHES, columns.REVERSALS):
        source = Source(kind=kind, filters=filters)
        asked += [" ".join(source._rows(None).split()), " ".join(source._end_of_piece(None).split())]
    assert len(asked) >= 12
    assert [one for one in asked if not _OF_ONE.search(one)] == []
