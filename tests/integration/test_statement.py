"""The statement beside a naive sum of the books: as it is counted, across midnights, and when a clock goes back."""

import random
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import Connection, text

from app import organizations
from app.errors import PointsError
from app.ledger import sandbox as rehearsal
from app.ledger.refill import refill, reset_sandbox
from app.postgres.database import snapshot, transaction
from app.postgres.locks import lock_organization
from app.scope import Scope
from app.statement import counting
from app.statement.makeup import makeup_of
from app.statement.read import Line, Statement, statement_of, today_of
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database", "broker", "balanced")

SEED, OPERATIONS = 49, 240
ANN, BOB, CID = (f"{name}@example.com" for name in ("ann", "bob", "cid"))


def count_days() -> None:
    """Run the upkeep that counts days."""
    # Importing the worker ends a process without settings, and a test has some only while it runs.
    from worker.upkeep import count_days as run  # noqa: PLC0415

    run()


def _counted(organization_id: int) -> list[date]:
    with transaction() as connection:
        days = text("SELECT day FROM daily_sums WHERE organization_id = :id ORDER BY sandbox, day")
        return list(connection.execute(days, {"id": organization_id}).scalars())


def _moves(connection: Connection, organization_id: int, *, sandbox: bool) -> list[tuple[datetime, Mapping[str, int]]]:
    """Return every move of a balance, each with its moment, read row by row."""
    moves: list[tuple[datetime, Mapping[str, int]]] = []
    of_mode = {"id": organization_id, "sandbox": sandbox}
    which = "organization_id = :id AND sandbox = :sandbox"
    for row in connection.execute(text(f"SELECT * FROM batches WHERE status = 'issued' AND {which}"), of_mode):
        unpaid = row.recipient_count - row.debited_count
        figures = {"debited": row.debited_amount, "batches": 1, "transactions": row.recipient_count, "unpaid": unpaid}
        moves.append((row.issued_at, figures))
    refills = connection.execute(text(f"SELECT * FROM refills WHERE {which}"), of_mode)
    reversals = connection.execute(text(f"SELECT * FROM reversals WHERE status = 'done' AND {which}"), of_mode)
    gone_back = ((row.done_at, "returned" if row.is_return else "reversed", row.reversed_amount) for row in reversals)
    return [
        *moves,
        *((row.created_at, {"refilled": row.amount}) for row in refills),
        *((moment, {kind: points}) for moment, kind, points in gone_back),
    ]


def _naive(
    connection: Connection, organization_id: int, first: date, last: date, *, sandbox: bool, today: date
) -> dict[date, Line]:
    """Add up the books day by day. What is stamped after today, by a clock that was put back, counts today."""
    moves = [(at.astimezone(UTC).date(), one) for at, one in _moves(connection, organization_id, sandbox=sandbox)]
    moves = [(today if last == today < day else day, one) for day, one in moves]

    def total(name: str, of_day: Callable[[date], bool]) -> int:
        return sum(one.get(name, 0) for day, one in moves if of_day(day))

    def balance(of_day: Callable[[date], bool]) -> int:
        gone_back = total("reversed", of_day) + total("returned", of_day)
        return total("refilled", of_day) - total("debited", of_day) + gone_back

    lines = {}
    for number in range((last - first).days + 1):
        at = first + timedelta(days=number)
        sums = ("refilled", "debited", "reversed", "returned", "batches", "transactions", "unpaid")
        lines[at] = Line(
            opening_balance=balance(at.__gt__),
            closing_balance=balance(at.__ge__),
            **{name: total(name, at.__eq__) for name in sums},
        )
    return lines


def _same(organization_id: int, *, sandbox: bool, days: int) -> Statement:
    """Return the statement of so many days up to today, once it is seen to be the naive sum of the books."""
    while True:
        with snapshot() as connection:
            today = today_of(connection, Scope(organization_id, sandbox=sandbox))
            first = today - timedelta(days=days - 1)
            found = statement_of(connection, Scope(organization_id, sandbox=sandbox), first=first, last=today)
            naive = _naive(connection, organization_id, first, today, sandbox=sandbox, today=today)
            balance = organizations.get(connection, Scope(organization_id, sandbox=sandbox)).balance
            if today_of(connection, Scope(organization_id, sandbox=sandbox)) == today:
                break
    assert found.days == naive
    lines = list(found.days.values())
    for line in (*lines, found.total):
        gone_back = line.reversed + line.returned
        assert line.opening_balance + line.refilled - line.debited + gone_back == line.closing_balance
    assert [line.closing_balance for line in lines[:-1]] == [line.opening_balance for line in lines[1:]]
    assert found.total.closing_balance == balance
    for name in ("refilled", "debited", "reversed", "returned", "batches", "transactions", "unpaid"):
        assert getattr(found.total, name) == sum(getattr(line, name) for line in lines)
    return found


class History:
    """A random history of a sandbox, whose clock crosses midnights and is put back."""

    def __init__(self, organization_id: int) -> None:
        self.random = random.Random(SEED)  # noqa: S311  # It is to be repeated, not secret.
        self.organization_id = organization_id
        self.sent: list[int] = []

    def send(self) -> None:
        emails = [ANN, BOB, CID][: self.random.randint(1, 3)]
        amount = self.random.choice((1, 7, 40, 900, 4_000))  # The balance pays some of them in part, or nobody.
        hold_days = self.random.choice((None, 1, 2))
        self.sent.append(books.issue_now(self.organization_id, emails, amount, sandbox=True, hold_days=hold_days))

    def take_back(self) -> None:
        if self.sent:
            amount = self.random.choice((None, 1))
            batch_id = self.random.choice(self.sent)
            books.reverse_now(self.organization_id, batch_id=batch_id, amount=amount, sandbox=True)

    def refill(self) -> None:
        books.run(refill, self.organization_id, self.random.randint(1, 3_000), sandbox=True)

    def let_hours_pass(self) -> None:
        with transaction() as connection:
            now = connection.execute(text("SELECT time_of(:id, true)"), {"id": self.organization_id}).scalar_one()
            later = now + timedelta(hours=self.random.uniform(0.1, 40))
            try:
                rehearsal.set_clock(connection, self.organization_id, later)
            except PointsError:  # It is two years ahead.
                return
        books.return_unclaimed()

    def reset(self) -> None:
        books.run(reset_sandbox, self.organization_id)

    def count(self) -> None:
        if self.random.random() < 0.5:
            count_days()
        else:  # As a worker that is killed in the middle.
            books.run(counting.count_step, Scope(self.organization_id, sandbox=True))

    def go_on(self) -> None:
        kinds = (self.send, self.take_back, self.refill, self.let_hours_pass, self.count, self.reset)
        self.random.choices(kinds, weights=(40, 12, 6, 30, 10, 1))[0]()


def test_a_random_history_with_midnights_and_a_clock_that_goes_back_is_as_a_naive_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "STEP", 6)
    monkeypatch.setattr(counting, "YOUNG_S", 0)
    organization_id = books.make_organization(1_000, sandbox_balance=5_000)
    books.make_users(ANN)
    history = History(organization_id)
    seen: set[str] = set()
    for number in range(1, OPERATIONS + 1):
        history.go_on()
        if number % 12 == 0:
            found = _same(organization_id, sandbox=True, days=history.random.choice((1, 3, 40, 366)))
            seen |= {name for name, figure in found.total._asdict().items() if figure}
        if number % 80 == 0:
            assert books.breaches() == []
    count_days()
    assert _counted(organization_id), "days are counted"
    found = _same(organization_id, sandbox=True, days=366)
    assert seen == set(found.total._fields), "all kinds of moves are in it"
    assert _same(organization_id, sandbox=False, days=3).total.closing_balance == 1_000


def _count_by_a_clock_that_is_ahead(organization_id: int) -> None:
    """Count all that there is up to the day after tomorrow, as a server would whose clock is that far ahead."""
    until = datetime.now(UTC) + timedelta(days=2)
    with transaction() as connection:
        lock_organization(connection, organization_id)
        for sandbox in (False, True):
            parameters = {"organization_id": organization_id, "sandbox": sandbox, "until": until}
            for statement in (counting._DELETE_VOID, counting._COUNT, counting._NOTE):
                connection.execute(statement, parameters)


@pytest.mark.parametrize("sandbox", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("what", ["paid", "unpaid", "taken back", "returned", "refilled"])
def test_whatever_is_stamped_after_a_clock_went_back_has_its_day_counted_again(what: str, *, sandbox: bool) -> None:
    organization_id = books.make_organization(500, sandbox_balance=500)
    first = books.issue_now(organization_id, [ANN], 5, sandbox=sandbox, hold_days=1)
    books.let_days_pass(3)
    _count_by_a_clock_that_is_ahead(organization_id)
    assert books.breaches() == []
    if what in ("paid", "unpaid"):
        books.issue_now(organization_id, [ANN], 5 if what == "paid" else 10_000, sandbox=sandbox)
    elif what == "taken back":
        books.reverse_now(organization_id, batch_id=first, sandbox=sandbox)
    elif what == "returned":
        books.return_unclaimed()
    else:
        books.run(refill, organization_id, 7, sandbox=sandbox)
    assert books.breaches() == []
    found = _same(organization_id, sandbox=sandbox, days=9)
    assert (found.total.unpaid, found.total.reversed, found.total.returned, found.total.refilled) == (
        what == "unpaid",
        5 * (what == "taken back"),
        5 * (what == "returned"),
        500 + 7 * (what == "refilled"),
    )
    count_days()
    assert _same(organization_id, sandbox=sandbox, days=9) == found


def test_the_month_is_made_of_its_labels_and_senders_and_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    organization_id = books.make_organization(1_000)
    for number in range(12):
        books.queue_batch(organization_id, [ANN], 10 + number, label=f"label {number}")
    books.queue_batch(organization_id, [ANN], 5)
    books.queue_batch(organization_id, [ANN], 10_000, label="unpaid")
    books.drain_all(organization_id)
    with transaction() as connection:
        today = today_of(connection, Scope(organization_id, sandbox=False))
        found = makeup_of(
            connection, Scope(organization_id, sandbox=False), first=today - timedelta(days=1), last=today
        )
        none = makeup_of(connection, Scope(organization_id, sandbox=True), first=today, last=today)
        monkeypatch.setattr("app.statement.makeup.LOOKED_AT_MAX", 3)
        newest = makeup_of(
            connection, Scope(organization_id, sandbox=False), first=today - timedelta(days=1), last=today
        )
    assert found.labels == [(f"label {number}", 10 + number) for number in reversed(range(2, 12))]
    assert (found.looked_at, found.points, found.other_labels) == (14, 191, 26)
    assert [points for _, points in found.senders] == [191]
    assert (found.of_items, found.other_senders) == (0, 0)
    assert (none.labels, none.senders, none.points, none.looked_at) == ([], [], 0, 0)
    assert (newest.labels, newest.points, newest.looked_at) == ([("label 11", 21), (None, 5)], 26, 3)
