"""A request to take points back: what it holds, and how it is read from a mapping, with every fault in one answer."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
from sqlalchemy import Connection, text

from app.batches.batch import ISSUED, NEVER_ISSUED
from app.errors import BalanceTooLarge, BatchNotIssued, OrganizationDisabled, PointsError, Refused
from app.fields.field import Field, FieldFault, Schema, Table, is_integer, kind, reference_to
from app.fields.kinds import ID, Array, Boolean, Integer, Text
from app.organizations import OrganizationInMode
from app.postgres.database import fetch_all
from app.settings import INT64_MAX, Settings
from app.values.ids import POSITIONS
from app.values.numbers import counted
from app.values.numbers import points as shown

REASON_LENGTH_MAX = 255


class OtherSum(PointsError):
    """Another sum would come back than the caller expects."""

    status = 409
    field = "expect"
    says = "Another sum than is expected would come back, so nothing is taken. Ask what would (POST …/reverse/verify)."


BATCH = Integer(
    "batch",
    "The id of the batch.",
    1,
    minimum=1,
    form="the id of a batch, an integer",
    bounds="the id of a batch, an integer of at least 1",
)
TRANSACTIONS = Array(
    "transactions",
    "Ids of transactions, each once.",
    of="ids",
    entries=ID,
    most=10_000,
    is_unique=lambda _: True,
)
AMOUNT = Integer(
    "amount",
    "Points to take from **each** transaction. By default all that are left.",
    None,
    minimum=1,
    maximum=INT64_MAX,
    unit="points",
)
ATOMIC = Boolean("atomic", "True: take all or nothing.", False, default=False)
REASON = Text(
    "reason",
    "Why the points are taken back; kept with the reversal.",
    "The wrong list",
    length_max=REASON_LENGTH_MAX,
    is_required=True,
)
EXPECTED = Table(
    "ReverseExpect",
    "What you believe comes back. If it would be another sum, nothing is taken.",
    Integer("recoverable", "The points of all transactions together.", 100, minimum=0, is_required=True),
)


class Expect(Field[int]):
    """The points that the caller believes to come back."""

    SCHEMA: ClassVar[Schema] = reference_to(EXPECTED.schema_name)

    def check(self, value: Any, limits: Settings) -> int:
        points: Any = value.get("recoverable") if isinstance(value, dict) and len(value) == 1 else None
        if not is_integer(points) or not 0 <= points <= INT64_MAX:
            raise FieldFault("field must be an object with recoverable, an integer of points, and nothing else.")
        return int(points)


EXPECT = Expect("expect", "What you believe comes back. If it would be another sum, nothing is taken.")
REVERSE = Table(
    "ReverseRequest",
    "Points to take back: of a `batch` or of `transactions`. A field that is not listed is a fault.",
    *(BATCH, TRANSACTIONS, AMOUNT, ATOMIC, REASON, EXPECT),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReverseRequest:
    """A valid request to take points back: from a batch, or from transactions in this order.

    `amount` is what to take from each; None: all that is left of it. `expected` is the sum that must come back, if any.
    """

    batch_id: int | None
    transaction_ids: Sequence[int] | None
    amount: int | None
    atomic: bool
    reason: str
    expected: int | None = None

    def meaning(self) -> bytes:
        """Return 32 bytes that are equal for two requests that mean the same, even if they are written differently."""
        parts = [self.batch_id, self.transaction_ids, self.amount, self.atomic, self.reason]
        parts += [] if self.expected is None else [self.expected]  # Bodies of before mean what they meant.
        return hashlib.sha256(orjson.dumps(parts)).digest()


class ReverseReading:
    """The fields of a reversal or of its verify, read in two steps: their form first, then whether the ids exist.

    `ids` are the transactions of a valid form; whoever reads looks them up between the steps.
    """

    def __init__(self, fields: Mapping[str, Any], limits: Settings) -> None:
        self._faults = REVERSE.new_faults(fields)
        self._require_one(fields)
        self._batch_id = BATCH.read(fields, self._faults, limits)
        self._entries = TRANSACTIONS.read(fields, self._faults, limits) or []
        if self._entries and len(self._entries) < len(fields["transactions"]):
            self._entries = []  # Of too many, none is looked up.
        self._amount = AMOUNT.read(fields, self._faults, limits)
        self._atomic = ATOMIC.read(fields, self._faults, limits)
        self._reason = REASON.read(fields, self._faults, limits)
        self._expected = EXPECT.read(fields, self._faults, limits)
        self.ids = [entry for entry in self._entries if _is_id(entry)]

    def _require_one(self, fields: Mapping[str, Any]) -> None:
        sent = [name for name in (BATCH.name, TRANSACTIONS.name) if fields.get(name) is not None]
        for name, other in ((BATCH.name, TRANSACTIONS.name), (TRANSACTIONS.name, BATCH.name)):
            if not sent:
                self._faults.add(name, f"The {name} field is required when {other} is not present.")
            elif len(sent) == 2:
                self._faults.add(name, f"Send either {name} or {other}, not both.")

    def request(self, absent: Collection[int] = ()) -> ReverseRequest:
        """Return the request.

        Args:
            absent: those of `ids` that are not transactions of the caller's organization and mode.

        Raises:
            InvalidRequest: with every fault, each under its field; a bad entry under its place, `transactions.3`.
        """
        places: dict[int, int] = {}
        for place, entry in enumerate(self._entries):
            if (sentence := _entry_fault(entry, places, absent)) is not None:
                self._faults.add_entry(f"transactions.{place}", sentence)
            elif _is_id(entry):
                places[entry] = place
        self._faults.raise_if_any()
        return ReverseRequest(
            batch_id=self._batch_id,
            transaction_ids=self.ids or None,
            amount=self._amount,
            atomic=bool(self._atomic),
            reason=self._reason or "",
            expected=self._expected,
        )


def _is_id(value: Any) -> bool:
    return is_integer(value) and 1 <= value <= INT64_MAX


def _entry_fault(value: Any, places: Mapping[int, int], absent: Collection[int]) -> str | None:
    if not is_integer(value):
        return f"The entry must be the id of a transaction, an integer, but is {kind(value)}."
    if value in places:
        return f"The entry is the same transaction as transactions.{places[value]}."
    if not _is_id(value) or value in absent:
        return "There is no transaction with this id."
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Recoverable:
    """How many points a reversal would take (0 when refused), and how many of its `transactions` are in each state.

    All of it is as the `queued` reversals of these transactions, which come first, will leave it. `held_points` of the
    recoverable ones are held, the others are their users'. Some of `held` and `credited` may have fewer points left
    than the amount to take.
    """

    refusal: PointsError | None
    recoverable: int
    held_points: int
    transactions: int
    held: int
    credited: int
    already_reversed: int
    not_debited: int
    queued: int


def recoverable(
    connection: Connection, request: ReverseRequest, organization: OrganizationInMode, *, batch_status: str | None
) -> Recoverable:
    """Return what a reversal would take; `batch_status` is that of its batch, None if it names transactions."""
    parameters = {
        "organization_id": organization.id,
        "batch_id": request.batch_id,
        "transaction_ids": None if request.transaction_ids is None else list(request.transaction_ids),
        "batch_ids": list({transaction_id // POSITIONS for transaction_id in request.transaction_ids or ()}),
    }
    queued = connection.execute(_QUEUED, parameters).all()
    rows = fetch_all(connection, _TRANSACTIONS, parameters, binary=True)
    left = _left_after(queued, {row_id: points_left for row_id, debited, _, points_left in rows if debited})
    credited = {row_id for row_id, _, is_credited, _ in rows if is_credited and left[row_id]}
    taken = {row_id: points for row_id in left if (points := _taken(left[row_id], request.amount))}
    is_short, points = request.atomic and len(taken) < len(rows), sum(taken.values())
    refusal: PointsError | None = None
    if organization.is_disabled:
        refusal = OrganizationDisabled()
    elif batch_status in NEVER_ISSUED:
        refusal = BatchNotIssued()
    elif batch_status not in (None, ISSUED):
        refusal = Refused("The batch is not issued, so nothing can be taken back yet.")
    elif request.expected not in (None, 0 if is_short else points):
        refusal = OtherSum()
    elif is_short:
        refusal = Refused("Not all of it can be taken back, so with atomic nothing is.")
    elif points == 0:
        refusal = _nothing_taken(request.amount, most_left=max(left.values(), default=0))
    elif organization.balance + points > INT64_MAX:
        refusal = BalanceTooLarge()
    takes = refusal is None or (isinstance(refusal, OtherSum) and not is_short)
    with_points = sum(points_left > 0 for points_left in left.values())
    return Recoverable(
        refusal=refusal,
        recoverable=points if takes else 0,
        held_points=sum(taken[row_id] for row_id in taken.keys() - credited) if takes else 0,
        transactions=len(rows),
        held=with_points - len(credited),
        credited=len(credited),
        already_reversed=len(left) - with_points,
        not_debited=len(rows) - len(left),
        queued=len(queued),
    )


def _nothing_taken(amount: int | None, *, most_left: int) -> Refused:
    if not most_left:
        return Refused("Nothing is left that could be taken back.")
    return Refused(f"Nobody has {counted(amount or 0, 'point')} left: the most that one has is {shown(most_left)}.")


def _taken(points_left: int, amount: int | None) -> int:
    """Return what a reversal takes from a debited transaction, as app/ledger/reverse.sql does."""
    if amount is None:
        return points_left
    return amount if amount <= points_left else 0


def _left_after(queued: Sequence[Any], left: dict[int, int]) -> dict[int, int]:
    """Return the points left of each transaction once the queued reversals are done, in their order.

    One that takes all or nothing, or a certain sum, counts as if it takes: where it does not, more is left.
    """
    for batch_id, transaction_ids, amount in queued:
        for row_id in transaction_ids or [row_id for row_id in left if row_id // POSITIONS == batch_id]:
            if row_id in left:
                left[row_id] -= _taken(left[row_id], amount)
    return left


_QUEUED = text("""
    SELECT batch_id, transaction_ids, amount FROM reversals
    WHERE organization_id = :organization_id AND status = 'queued'
      AND CASE WHEN CAST(:batch_id AS bigint) IS NOT NULL
               THEN reversal_batches(batch_id, transaction_ids) @> ARRAY[CAST(:batch_id AS bigint)]
               ELSE batch_id = ANY(CAST(:batch_ids AS bigint[]))
                    OR transaction_ids && CAST(:transaction_ids AS bigint[]) END
    ORDER BY id
""")
# Each transaction is looked up by itself, as in a drain.
_TRANSACTIONS = f"""
    SELECT transaction_id(t.batch_id, t.position), t.debited, t.credited, coalesce(t.points_left, t.amount, b.amount)
    FROM (SELECT x.* FROM transactions x
          WHERE x.batch_id = %(batch_id)s::bigint AND x.organization_id = %(organization_id)s
          UNION ALL
          SELECT x.* FROM unnest(%(transaction_ids)s::bigint[]) AS ids (id)
          CROSS JOIN LATERAL (
              SELECT * FROM transactions
              WHERE batch_id = ids.id / {POSITIONS} AND position = ids.id %% {POSITIONS}
                AND organization_id = %(organization_id)s LIMIT 1) x) t
    CROSS JOIN LATERAL (SELECT amount FROM batches
                        WHERE batches.id = t.batch_id AND organization_id = %(organization_id)s LIMIT 1) b
""".encode()
