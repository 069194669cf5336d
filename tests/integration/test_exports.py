"""An export: the rows that the list has, oldest first, of one moment, whole or known to be broken off."""

import csv
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import count
from typing import Any

import pytest
from sqlalchemy import text

from app.batches import payloads
from app.errors import NotFound, Refused
from app.exports import export, sources
from app.exports.columns import BATCHES, COLUMNS, CSV, JSONL, KINDS, REVERSALS, TRANSACTIONS
from app.exports.export import begin
from app.ledger.refill import reset_sandbox
from app.ledger.sandbox import set_clock
from app.pages import batch_pages, lists, transaction_pages
from app.pages.filters import BY_API, CursorPosition, Filters
from app.postgres import locks
from app.postgres.connections import engine
from app.postgres.database import transaction
from app.recipient_files.cells import marked_as_text, marked_as_text_in_sql, unmarked
from app.values.timestamps import timestamp
from tests.integration import books
from tests.integration.visitors import make_member

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB, EVE = "ann@example.com", "Bob.Lee@Example.org", "eve@example.com"
# What a spreadsheet would run, and what CSV has to quote.
_LABELS = ["=1+1", "'=1", "-2", "a,b", 'say "x"\r\ntwice', " blank ", "+", "@x", "\ttab", "Zoë", "\\.", "5"]

PAGES: dict[str, Any] = {
    TRANSACTIONS: transaction_pages.page,
    BATCHES: batch_pages.page,
    REVERSALS: lists.reversals,
}


@pytest.fixture
def acme() -> int:
    """Make an organization with transactions in every state, and another beside it."""
    acme, other = books.make_organization(10_000, sandbox_balance=500), books.make_organization(1_000)
    books.make_users(ANN)
    member_id = make_member(acme, "member@example.com", "sender")
    for number, label in enumerate(_LABELS):
        books.queue_batch(acme, [ANN, f"r{number}@example.com"], 1 + number, label=label)
    books.issue_now(other, [ANN, BOB], 7)
    books.issue_now(acme, [ANN, BOB], 3, sandbox=True)
    books.drain_all(acme)
    late = books.queue_batch(acme, [BOB, EVE], [20, 30], references=["-7", None])
    books.rewrite(
        f"UPDATE batches SET api_key_id = NULL, member_id = {member_id}, labels = '{{=Own,NULL}}',"
        f" retry_at = clock_timestamp() + interval '50 s' WHERE id = {late}",
    )
    whole = books.issue_now(acme, [ANN, EVE, "gone@example.com"], 11, hold_days=1)
    books.execute(f"UPDATE batches SET retry_at = NULL WHERE id = {late}")
    books.drain_all(acme)  # Issued behind a batch with a higher id.
    books.reverse_now(acme, batch_id=1, amount=1)
    books.reverse_now(acme, transaction_ids=[whole * 131_072 + 1])
    books.make_users(EVE)
    books.let_days_pass(2)
    books.return_unclaimed()
    books.issue_now(acme, [EVE, "last@example.com", "unpaid@example.com"], 8_000)
    books.queue_reversal(acme, batch_id=2)
    books.queue_batch(acme, [ANN], 1, label="waits")
    return acme


def _content(kind: str, filters: Filters, *, form: str = CSV, after: int | None = None) -> bytes:
    return b"".join(begin(kind, form, filters, after=after).content())


def _rows(content: bytes) -> list[dict[str, str]]:
    """Return the rows of a whole CSV, and see that its last line tells them."""
    *rows, last = csv.DictReader(StringIO(content.decode(), newline=""))
    values = list(last.values())
    assert values[0].partition(" after ")[0] == f"total of {len(rows)} rows"
    for name in {"points", "reversed"} & set(last):
        assert int(last[name]) == sum(int(row[name] or 0) for row in rows)
    return rows


def _listed(kind: str, filters: Filters) -> list[dict[str, str]]:
    """Return what the list itself has, oldest first, as the cells of an export."""
    found: list[Any] = []
    start: CursorPosition | None = None
    with transaction() as connection:
        for _ in count():
            page = PAGES[kind](connection, filters, start=start, limit=7)
            found, start = [*found, *page.rows], page.next
            if start is None:
                break
    cells = _transactions(found[::-1]) if kind == TRANSACTIONS else _others(kind, found[::-1])
    mode = {"mode": "sandbox" if filters.sandbox else "live"}
    return [{name: _cell(value) for name, value in (row | mode).items()} for row in cells]


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return timestamp(value)
    return "" if value is None else marked_as_text(value) if isinstance(value, str) else str(value)


def _transactions(found: list[transaction_pages.Row]) -> Iterator[dict[str, Any]]:
    for (batch, row), body in zip(found, payloads.transaction_payloads(found), strict=True):
        same = ("email", "reference", "label", "amount", "reversed", "state")
        yield {name: body[name] for name in same} | {
            "transaction_id": body["id"],
            "batch_id": batch.id,
            "issued_at": batch.issued_at,
            "points": body["amount"] if body["debited"] else 0,
            "balance": row.balance,
            "sender": "Ann Sender" if batch.sender else None,
        }


# Where a column of an export has another name than in the row of a list.
_NAMES = {
    BATCHES: {
        "batch_id": "id",
        "recipients": "recipient_count",
        "debited": "debited_count",
        "points": "debited_amount",
    },
    REVERSALS: {"reversal_id": "id", "points": "reversed_amount"},
}


def _others(kind: str, found: list[Any]) -> Iterator[dict[str, Any]]:
    for one in found:
        names = _NAMES[kind] | {"balance": "current_balance"}
        row = {column.name: getattr(one, names.get(column.name, column.name), None) for column in COLUMNS[kind]}
        yield row | {"sender": "Ann Sender" if getattr(one, "sender", None) else None}


_FIRST = datetime(2020, 1, 1, tzinfo=UTC)
_ASKED: dict[str, list[dict[str, Any]]] = {
    TRANSACTIONS: [
        {},
        *({"state": state} for state in ("credited", "held", "unpaid", "reversed", "returned")),
        {"debited": False},
        {"debited": False, "state": "credited"},
        {"credited": True, "debited": True},
        {"email_key": ANN},
        {"email_key": BOB.lower(), "state": "held"},
        {"email_key": ANN, "batch_id": 3},
        {"email_key": "nobody@example.com"},
        {"reference": "-7"},
        {"reference": "-7", "email_key": ANN},
        {"batch_id": 2},
        {"user_id": 1},
        {"user_id": 99},
        {"created_from": _FIRST},
        {"created_to": _FIRST},
    ],
    BATCHES: [
        {},
        *({"equals": {"status": status}} for status in ("issued", "queued")),
        {"equals": {"label": "=1+1"}},
        {"debited": False},
        {"credited": True},
        {"credited": False, "debited": True},
        {"email_key": ANN},
        {"email_key": EVE, "credited": True},
        {"batch_id": 4},
        {"sender": BY_API, "points": 4},
        {"created_to": _FIRST},
    ],
    REVERSALS: [{}, {"equals": {"status": "done"}}, {"equals": {"status": "queued"}}, {"created_from": _FIRST}],
}


@pytest.mark.parametrize("piece_rows", [1, 20_000, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_export_is_the_list_oldest_first_whatever_is_asked_and_in_pieces_of_any_size(
    acme: int, monkeypatch: pytest.MonkeyPatch, kind: str, piece_rows: int
) -> None:
    monkeypatch.setattr(sources, "PIECE_ROWS", piece_rows)
    most = 0
    for sandbox in (False, True):
        for asked in _ASKED[kind]:
            filters = Filters(organization_id=acme, sandbox=sandbox, **asked)
            rows, listed = _rows(_content(kind, filters)), _listed(kind, filters)
            if "email_key" in asked or "reference" in asked or "user_id" in asked:  # Such lists go by their ids.
                key = COLUMNS[kind][0].name
                rows, listed = (sorted(some, key=lambda row: int(row[key])) for some in (rows, listed))
            assert rows == listed, asked
            most = max(most, len(rows))
    assert most > 3


@pytest.mark.parametrize("kind", KINDS)
def test_lines_of_json_say_the_same_with_their_types_and_texts_as_they_were_sent(acme: int, kind: str) -> None:
    filters = Filters(organization_id=acme, sandbox=False)
    rows = _rows(_content(kind, filters))
    *documents, last = map(json.loads, _content(kind, filters, form=JSONL).splitlines())
    texts = {column.name for column in COLUMNS[kind] if column.is_text}
    shown = [
        {name: _cell(value) if name in texts else "" if value is None else str(value) for name, value in one.items()}
        for one in documents
    ]
    assert shown == rows
    assert last["total"]["rows"] == len(documents)
    assert last["total"]["points"] == sum(one["points"] or 0 for one in documents)
    if kind == TRANSACTIONS:
        assert {one["label"] for one in documents} >= {*_LABELS, "=Own"}


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_that_goes_on_behind_any_row_has_the_rest_and_no_row_twice(
    acme: int, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sources, "PIECE_ROWS", 3)
    key = COLUMNS[kind][0].name
    for email_key in (None, ANN) if kind != REVERSALS else (None,):
        filters = Filters(organization_id=acme, sandbox=False, email_key=email_key)
        whole = _content(kind, filters)
        rows = _rows(whole)
        heading = whole[: whole.index(b"\n") + 1]
        for number, row in enumerate(rows, 1):
            rest = _content(kind, filters, after=int(row[key]))
            assert not rest.startswith(heading)
            assert _rows(heading + rest) == rows[number:]
            assert rest.splitlines()[-1].startswith(f"total of {len(rows) - number} rows after {row[key]},".encode())
    for unknown in (0, 77, 131_072, 2**63):
        with pytest.raises(NotFound):
            begin(kind, CSV, Filters(organization_id=acme, sandbox=True), after=unknown)


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_after_an_export_began_is_not_in_it_and_is_all_that_the_next_one_adds(
    acme: int, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sources, "PIECE_ROWS", 2)
    filters = Filters(organization_id=acme, sandbox=False)
    key = COLUMNS[kind][0].name
    before = [row[key] for row in _rows(_content(kind, filters))]
    export = begin(kind, CSV, filters)
    content = export.content()
    begun = [next(content), next(content)]
    added = books.issue_now(acme, [ANN, BOB, EVE], 1)
    books.reverse_now(acme, batch_id=added)
    rows = _rows(b"".join([*begun, *content]))
    assert [row[key] for row in rows] == before
    heading = begun[0]
    more = _rows(heading + _content(kind, filters, after=int(rows[-1][key])))
    assert len(more) == {TRANSACTIONS: 4, BATCHES: 1, REVERSALS: 1}[kind], "and what waited was issued too"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sandbox", [True, False])
def test_what_a_clock_has_stamped_before_it_was_put_back_is_in_an_export(
    monkeypatch: pytest.MonkeyPatch, kind: str, *, sandbox: bool
) -> None:
    monkeypatch.setattr(sources, "PIECE_ROWS", 1)
    acme = books.make_organization(100, sandbox_balance=100)
    for place in range(2):
        with transaction() as connection:
            if sandbox and place == 0:
                set_clock(connection, acme, datetime.now(UTC) + timedelta(days=9))
            elif sandbox:
                reset_sandbox(connection, acme)
        books.reverse_now(acme, batch_id=books.issue_now(acme, [ANN, BOB], 1, sandbox=sandbox), sandbox=sandbox)
        if place == 0 and not sandbox:  # As by a clock of PostgreSQL that was ahead.
            ahead = "= clock_timestamp() + interval '9 days'"
            books.rewrite(
                f"UPDATE batches SET created_at {ahead}, issued_at {ahead}", f"UPDATE reversals SET created_at {ahead}"
            )
    filters = Filters(organization_id=acme, sandbox=sandbox)
    rows, key = _rows(_content(kind, filters)), COLUMNS[kind][0].name
    assert rows == _listed(kind, filters)
    assert len(rows) == {TRANSACTIONS: 4, BATCHES: 2, REVERSALS: 2}[kind]
    # Behind a row whose time is still to come, what comes now would be left out.
    with pytest.raises(Refused, match="without after"):
        begin(kind, CSV, filters, after=int(rows[-1][key]))
    assert len(_content(kind, filters, after=int(rows[0][key])).splitlines()) == len(rows)


@pytest.mark.parametrize("kind", [BATCHES, REVERSALS])
def test_who_is_writing_when_an_export_begins_is_waited_for(
    acme: int, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A row has its time before its commit: without waiting it would be behind the last row, and in no export ever."""
    table = {BATCHES: "batches", REVERSALS: "reversals"}[kind]
    columns = "organization_id, sandbox, " + (
        "amount, atomic, recipient_count, emails" if kind == BATCHES else "batch_id, atomic, reason"
    )
    values = f"{acme}, false, " + ("1, false, 1, '{ann@example.com}'" if kind == BATCHES else "1, false, 'late'")
    with closing(engine().connect()) as slow:
        made = slow.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({values}) RETURNING id")).scalar_one()
        pauses: list[float] = []

        def commit(seconds: float) -> None:
            slow.commit()
            pauses.append(seconds)

        monkeypatch.setattr("app.postgres.locks.time.sleep", commit)
        rows = _rows(_content(kind, Filters(organization_id=acme, sandbox=False)))
    assert len(pauses) >= 1
    assert rows[-1][COLUMNS[kind][0].name] == str(made)


def test_who_does_not_end_is_not_waited_for_without_end(acme: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_WRITES_AT_MOST_S", 0.0)
    with closing(engine().connect()) as slow:
        slow.execute(text("LOCK TABLE batches IN ROW EXCLUSIVE MODE"))
        with pytest.raises(export.Unsettled):
            begin(TRANSACTIONS, CSV, Filters(organization_id=acme, sandbox=False))
        begin(REVERSALS, CSV, Filters(organization_id=acme, sandbox=False))


@pytest.mark.parametrize("cell", ["=1", "''@x", "'a", "", "a", "A=1", "\n=2", "'\t", "5", "-", "é", "'-\r\nx", "^["])
def test_postgresql_marks_the_same_cells_as_text_as_every_other_file(cell: str) -> None:
    statement = text(f'SELECT {marked_as_text_in_sql("cell")} FROM (SELECT CAST(:cell AS text) COLLATE "C" AS cell) c')
    marked = books.value(statement, {"cell": cell})
    assert marked == marked_as_text(cell)
    assert unmarked(marked) == cell
