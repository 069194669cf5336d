"""The import of users from a CSV file, on a real PostgreSQL: what is registered, claimed, named and carried on."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

import pytest
from sqlalchemy import Connection

from app import users
from app.cli import users_import
from app.cli.users_import import import_users
from app.errors import Refused
from app.ledger import claim, registering
from app.postgres.database import transaction
from tests.integration import books
from tests.unit.workbooks import misleading_xlsx, xlsx

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB, CY = "ann@example.com", "bob@example.com", "cy@example.com"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a handful of rows be several chunks, and a chunk several claims."""
    monkeypatch.setattr(users_import, "CHUNK_ROWS", 3)
    monkeypatch.setattr(claim, "_GROUP", 2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.csv"


def _write(path: Path, emails: Sequence[str]) -> Path:
    rows = "".join(f"{email},First,Last\n" for email in emails)
    path.write_text(f"email,first_name,last_name\n{rows}")
    return path


def _some(number: int) -> list[str]:
    return [f"user{place}@example.com" for place in range(number)]


@pytest.mark.parametrize(
    ("content", "not_used"),
    [
        (f"email,first_name,last_name\n{ANN},Ann,Lee\n".encode(), []),
        (f"note;Last Name;Email;First Name\r\n\r\nx;Lee;{ANN};Ann\r\n".encode("utf-8-sig"), ["“note” (1)"]),
        (f"first_name\tLAST-NAME\tEmail Address\nAnn\tLee\t{ANN}\n".encode("utf-16"), []),
        (b"note,E-Mail,FirstName,last name\ncaf\xe9,ann@example.com,Ann,Lee\n", ["“note” (1)"]),
    ],
)
def test_the_columns_come_in_any_order_delimiter_and_encoding(path: Path, content: bytes, not_used: list[str]) -> None:
    path.write_bytes(content)
    imported = import_users(path)
    assert imported.not_used == not_used
    assert (imported.registered, imported.already_registered, imported.bad_rows) == (1, 0, [])
    assert books.make_users(ANN) == [1]


def test_what_a_workbook_hides_is_asked_and_what_misleads_in_it_is_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "people.xlsx"
    path.write_bytes(misleading_xlsx(["email", "first_name", "last_name", "external_id"]))
    with pytest.raises(
        Refused, match=r"1 of these rows is hidden in the workbook\. Choose with --hidden-rows include or"
    ):
        import_users(path)
    imported = import_users(path, hidden_rows="leave-out")
    assert imported.registered == 1
    assert [row.line for row in imported.bad_rows] == list(range(3, 13))
    reasons = [row.reason.partition(":")[0] for row in imported.bad_rows]
    assert reasons[:3] == [
        "The row is hidden in the workbook, and left out as you chose.",
        "The row has in “external_id” (4) the error #DIV/0!",
        "The row has in “first_name” (2) the percentage 100%",
    ]
    assert reasons[-1] == "The row has in “last_name” (3) a formula whose value is not stored"


def test_the_users_of_a_workbook_are_those_of_its_sheet(tmp_path: Path) -> None:
    path = tmp_path / "people.xlsx"
    heading = ["E-Mail", "First Name", "Last Name"]
    path.write_bytes(xlsx({"Old": [heading, [BOB, "Bob", "Lee"]], "New": [heading, [ANN, "Ann", None], [CY, 1, "Li"]]}))
    with pytest.raises(Refused, match="addresses in 2 sheets: “Old” and “New”"):
        import_users(path)
    imported = import_users(path, sheet="New")
    assert (imported.registered, imported.bad_rows) == (2, [])
    with transaction() as connection:
        assert users.get(connection, CY).first_name == "1"


def test_external_ids_are_imported_by_the_rules_of_the_call(path: Path) -> None:
    path.write_text("email,first_name,last_name\ng@x.org,G,H\n")
    import_users(path)
    rows = (
        *("a@x.org,A,B,one", "b@x.org,A,B,", "c@x.org,A,B,one", "a@x.org,A,B,one", "a@x.org,A,B,two"),
        *("b@x.org,A,B,six", "d@x.org,A,B,a b", "g@x.org,G,H,seven", "g@x.org,Other,H,"),
    )
    path.write_text("".join(f"{line}\n" for line in ("email,first_name,last_name,External ID", *rows)))
    imported = import_users(path)
    assert (imported.registered, imported.already_registered) == (2, 1)
    reasons = dict(imported.bad_rows)
    assert list(reasons) == [4, 6, 7, 8, 9, 10]
    for line, words in (
        *((4, "that of another user"), (6, "external_id is another"), (7, "external_id is none")),
        *((8, "no blanks"), (9, "external_id is none"), (10, "other names")),
    ):
        assert words in reasons[line], line
    with transaction() as connection:
        assert [users.get(connection, f"{name}@x.org").external_id for name in "ab"] == ["one", None]
    mended = Path(imported.errors_file or "")
    mended.write_text(mended.read_text().replace("c@x.org,A,B,one", "c@x.org,A,B,three"))
    assert import_users(mended).registered == 1
    with transaction() as connection:
        assert users.get(connection, "c@x.org").external_id == "three"


def test_bad_rows_hold_no_formula_and_once_mended_are_imported_with_the_names_they_had(path: Path) -> None:
    path.write_text(f"email,first_name,last_name\n=HYPERLINK(1),-Ann,=Lee\n'+cy@example.com,Cy,\n{BOB},Bob,'t Hooft\n")
    imported = import_users(path)
    assert ([bad.line for bad in imported.bad_rows], imported.registered) == ([2, 3], 1)
    mended = Path(imported.errors_file or "")
    written = mended.read_text()
    assert "'=HYPERLINK(1),'-Ann,'=Lee,2," in written
    mended.write_text(written.replace("'=HYPERLINK(1)", ANN))
    assert import_users(mended).registered == 1
    with transaction() as connection:
        names = [(one.first_name, one.last_name) for one in (users.get(connection, email) for email in (ANN, BOB))]
    assert names == [("-Ann", "=Lee"), ("Bob", "'t Hooft")]


def test_each_bad_row_has_its_line_and_can_be_mended_and_imported(path: Path) -> None:
    path.write_bytes(
        b"last_name,email,first_name\n"
        b"Lee,ann@example.com,Ann\n"
        b"Lee,nonsense,No\n"
        b'"Two\nlines",bob@example.com,Bob\n'
        b"Lee,cy@example.com\n"
        b'Lee,"dan@example.com"x,Dan\n'
        b"M\xfcller,eve@example.com,Eve\n"
        b"Lee,finn@example.com,Finn,Jr\n"
        b" ,gus@example.com,Gus\n"
    )
    imported = import_users(path)
    assert imported.registered == 4
    assert [bad.line for bad in imported.bad_rows] == [3, 6, 7, 9]
    reasons = ("email must be an", "2 cells for 3 columns", "a quote that is not closed", "4 cells for 3 columns")
    for bad, words in zip(imported.bad_rows, reasons, strict=True):
        assert words in bad.reason
    errors_file = path.with_name("people.errors.csv")
    assert imported.errors_file == str(errors_file)
    written = errors_file.read_bytes().decode(errors="surrogateescape").splitlines()
    rows = list(csv.DictReader(written))
    assert [(row["email"], row["line"]) for row in rows[:2]] == [("nonsense", "3"), (CY, "6")]
    errors_file.write_text("".join(f"{line}\n" for line in (written[0], written[2].replace(",,", ",Cy,"))))
    assert import_users(errors_file).registered == 1


def test_an_import_goes_on_at_its_last_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users_import, "CHUNK_ROWS", 100)
    monkeypatch.setattr(claim, "CLAIM_ROWS_MAX", 4)
    emails = _some(6)
    organization_id = books.make_organization(1_000)
    for _ in range(3):
        books.issue_now(organization_id, emails, 10)
    claims: list[int] = []

    def claim_and_interrupt(
        connection: Connection, user_ids: Sequence[int], organization_ids: Sequence[int], **at: bool
    ) -> claim.Claimed:
        step = claim_some(connection, user_ids, organization_ids, **at)
        claims.append(step.transactions)
        if len(claims) == 3:
            raise KeyboardInterrupt
        return step

    claim_some = claim.claim
    monkeypatch.setattr(claim, "claim", claim_and_interrupt)
    with pytest.raises(Refused, match="Interrupted: 2 are registered"):
        import_users(_write(path, emails))
    assert books.breaches() == []
    assert [books.balance_of_user(email) for email in emails[:2]] == [30, 30]
    imported = import_users(path)
    assert (imported.registered, imported.already_registered) == (4, 2)
    assert [books.balance_of_user(email) for email in emails] == [30] * 6
    # Two users hold six transactions, so each two are a transaction of two claims; the third was rolled back.
    assert claims == [4, 2, 4, 4, 2, 4, 2]
    assert books.breaches() == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"name\nAnn\n", "no column email and no column first_name and no column last_name"),
        (b"email,first_name\n", "no column last_name"),
        (b"email,first_name,last_name,E-Mail\n", "column email twice"),
        (b'"email,first_name,last_name\nann@example.com,Ann,Lee\n', "from line 1 on: a quote is opened"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_what_to_do(path: Path, content: bytes, words: str) -> None:
    path.write_bytes(content)
    with pytest.raises(Refused, match=words):
        import_users(path)


def test_a_disk_that_is_full_of_bad_rows_stops_no_import(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(path, [*["broken"] * 5_000, ANN])
    opened = Path.open

    def on_a_full_disk(file: Path, *how: Any, **more: Any) -> IO[Any]:
        return cast(IO[Any], opened(Path("/dev/full") if "errors" in file.name else file, *how, **more))

    monkeypatch.setattr(Path, "open", on_a_full_disk)
    path.with_name("people.errors.csv.unfinished").touch()
    imported = import_users(path)
    assert (imported.registered, len(imported.bad_rows), imported.errors_file) == (1, 5_000, None)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_interrupted_import_leaves_the_earlier_bad_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_users(_write(path, ["first", "second"]))
    errors_file = path.with_name("people.errors.csv")
    before = errors_file.read_text()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(registering, "register", interrupt)
    with pytest.raises(Refused, match="Interrupted"):
        import_users(_write(path, ["nonsense", ANN, BOB, CY, "more"]))
    assert errors_file.read_text() == before
    assert not path.with_name("people.errors.csv.unfinished").exists()
