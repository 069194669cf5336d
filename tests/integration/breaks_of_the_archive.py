"""Ways to break what is known of the archive, in the form of `tests.integration.breaks`."""

from app.values.ids import POSITIONS
from tests.integration.breaks import CLAIM_TOLD, LIVE, RECIPIENTS, SUMS, USERS

CLOSING = "the closing sums of archived batches are those of their heads and reversals"
WHOLE = "an archived range has as many transactions as its closing sums, and its issued batches alone are archived"
OF_A_USER = "the closing sums of a user are its entries of archived batches"

# A range beyond all batches, and so without any.
_FIRST = 10**9
_NAMED = f"batches {_FIRST} to {_FIRST + 8}"


def _range_of(transactions: int) -> str:
    return (
        "INSERT INTO archived_ranges (first_batch_id, end_batch_id, transactions, file, sha256, batches_sha256,"
        f" compared_at, archived_at, emptied_at) VALUES ({_FIRST}, {_FIRST + 9}, {transactions}, 'x', sha256('x'),"
        " sha256('x'), now(), now(), now())"
    )


_ENTRY = f"VALUES (1, 1, {_FIRST * POSITIONS}, now())"
_SUM = "INSERT INTO archived_sums VALUES"
_EMPTIED = (
    "UPDATE batches SET archived_at = now(), emails = '{}', email_keys = NULL, labels = NULL, item_references = NULL"
)

BREAKS_OF_THE_ARCHIVE: list[tuple[str, set[tuple[str, str]], list[str]]] = [
    (
        "closing sums of transactions that no batch has",
        {(CLOSING, _NAMED)},
        [_range_of(1), f"{_SUM} ({_FIRST}, 1, NULL, 1, 0, 0, 0, 0, false)"],
    ),
    (
        "an archived range with more transactions than its closing sums",
        {(WHOLE, _NAMED)},
        [_range_of(5)],
    ),
    (
        "a batch that is archived, and in no range of the archive",
        {(WHOLE, "batch 4"), (RECIPIENTS, "batch 4")},
        [f"{_EMPTIED} WHERE id = 4"],
    ),
    (
        "an entry of an archived batch that no closing sum has",
        {(OF_A_USER, "user 1")},
        [
            _range_of(0),
            f"INSERT INTO user_entries (user_id, organization_id, transaction_id, created_at) {_ENTRY}",
        ],
    ),
    (
        "closing sums that credit a user with what it never got",
        {(CLOSING, _NAMED), (OF_A_USER, "user 1"), (USERS, "user 1"), (SUMS, LIVE)},
        [_range_of(1), f"{_SUM} ({_FIRST}, 1, 1, 1, 1, 5, 5, 0, false)"],
    ),
    (
        "a closing figure of a claim that no event tells of",
        {(CLAIM_TOLD, "user 1")},
        [_range_of(0), f"INSERT INTO archived_claims VALUES ({_FIRST}, 1, 1, now() - interval '9 days', 1)"],
    ),
]
