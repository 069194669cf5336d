"""What `points send` reads from a file: any program's CSV, its column, its bad lines, its parts and their keys."""

import csv
import io
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from app.addresses import parse
from app.cli.csv_file import CsvFile
from app.cli.send.column import find_column
from app.cli.send.recipients import Part, Recipients, campaign, idempotency_key
from app.errors import Refused

ANN, BOB, CY = "ann@example.com", "bob@example.com", "cy@example.com"
_PEOPLE = f"name,email\nAnn,{ANN}\n"


_opened: list[Recipients] = []


@pytest.fixture(autouse=True)
def closed_at_the_end() -> Iterator[None]:
    """Close the temporary file of every recipients that a test has read."""
    yield
    while _opened:
        _opened.pop().close()


def _read(path: Path, column: str | None = None) -> Recipients:
    with closing(CsvFile(path)) as file:
        _opened.append(Recipients.read(file, find_column(file, column), lambda _place: None))
    return _opened[-1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.csv"


def _parts(recipients: Recipients, size: int = 10_000) -> list[Part]:
    return list(recipients.parts(size))


@pytest.mark.parametrize(
    ("content", "lines", "heading"),
    [
        (f"email\n{ANN}\n{BOB}\n", [2, 3], "email"),
        (f"{ANN}\n{BOB}", [1, 2], "column 1"),
        (f"Name;E-Mail\r\nAnn;{ANN}\r\nBob;{BOB}\r\n", [2, 3], "E-Mail"),
        (f"\ufeffMAIL\tName\n{ANN}\tAnn, Lee\n{BOB}\tBob\n", [2, 3], "MAIL"),
        (f'"e-mail","name"\n" {ANN} ","Lee, ""A"""\n"{BOB}",x\n', [2, 3], "e-mail"),
        (f"Kunde,Adresse\nAnn,{ANN}\nBob,{BOB}\n", [2, 3], "Adresse"),
        (f"Lee,{ANN},1\nKay,{BOB},2\n", [1, 2], "column 2"),
        (f'{ANN};"Lee, Ann"\n{BOB};"Kay, Bob"\n', [1, 2], "column 1"),
        (f"\n\nemail,x\n , \n{ANN},1\n\n{BOB},2\n\n", [5, 7], "email"),
        (f'name,email\n"Ann\nLee",{ANN}\nBob,{BOB}\n', [2, 4], "email"),
        (f"email\r{ANN}\r{BOB}\r", [2, 3], "email"),
        (f"x\tmail\n;\t{ANN}\n;\t{BOB}\n", [2, 3], "mail"),
        (f"e.mail,name\n{ANN},Ann\n{BOB},Bob\n", [2, 3], "e.mail"),
        (f"user email,reports to\n{ANN},boss@example.com\n{BOB},boss@example.com\n", [2, 3], "user email"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_the_addresses_are_found_whoever_wrote_the_file(
    path: Path, content: str, lines: list[int], heading: str, encoding: str
) -> None:
    mark = "" if encoding == "utf-8" else "\ufeff"  # Of UTF-16 it tells which of the two it is.
    path.write_bytes((content if content.startswith(mark) else mark + content).encode(encoding))
    with closing(CsvFile(path)) as file:
        assert find_column(file, None).heading == heading
    recipients = _read(path)
    [part] = _parts(recipients)
    assert (part.number, part.lines, list(part.emails), recipients.bad) == (1, lines, [ANN, BOB], [])


@pytest.mark.parametrize("column", ["To", "to", "2"])
def test_a_column_is_taken_by_its_heading_or_number(path: Path, column: str) -> None:
    path.write_text(f"email,to\n{ANN},{BOB}\n")
    [part] = _parts(_read(path, column))
    assert list(part.emails) == [BOB]


def test_a_heading_by_which_a_column_was_asked_for_is_no_bad_line(path: Path) -> None:
    path.write_text(f"name,contact.address\nAnn,{ANN}\n")
    recipients = _read(path, "contact.address")
    assert (recipients.bad, recipients.count) == ([], 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe" + _PEOPLE.encode(), "begins as UTF-16 and is none: save it as CSV in UTF-8"),
        (_PEOPLE.encode("utf-16-le"), "No column of people.csv holds e-mail addresses"),  # Nothing tells that it is.
        (_PEOPLE.encode("utf-16-be"), "No column of people.csv holds e-mail addresses"),
    ],
    ids=["none", "unmarked le", "unmarked be"],
)
def test_a_file_whose_encoding_cannot_be_told_is_refused(path: Path, content: bytes, words: str) -> None:
    path.write_bytes(content)
    with pytest.raises(Refused, match=words):
        _read(path)


def test_what_can_be_read_only_once_is_refused_with_what_to_do() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    try:
        with pytest.raises(Refused, match="can be read only once, and must be read twice: save it as a file first"):
            CsvFile(Path(f"/dev/fd/{reading}"))
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    ("content", "column", "words"),
    [
        ("", None, "is empty"),
        ("a,b\n1,2\n", None, "No column of people.csv holds e-mail addresses"),
        (f"{ANN},{BOB}\n", None, "1 and 2 hold e-mail addresses"),
        (f"mail,e-mail\n{ANN},{BOB}\n", None, "“mail” \\(1\\) and “e-mail” \\(2\\) hold"),
        (f"email\n{ANN}\n", "nonsense", "no column nonsense: its columns are “email”"),
        (f"email\n{ANN}\n", "2", "no column 2"),
        (f'email\n"{ANN}\n{BOB}\n', None, "from line 2 on: a quote is opened and never closed"),
    ],
)
def test_a_file_without_one_column_of_addresses_is_refused_with_what_to_do(
    path: Path, content: str, column: str | None, words: str
) -> None:
    path.write_text(content)
    with pytest.raises(Refused, match=words):
        _read(path, column)


def test_bad_lines_and_repeats_are_named_with_their_lines_and_left_out(path: Path) -> None:
    path.write_bytes(
        b"name,email\nAnn,ann@example.com\nNo,nonsense\nShort\nAgain,ANN@example.com\n"
        b'Quote,"bob@example.com"x\nLatin,b\xf6b@example.com\nCy,cy@example.com\n'
    )
    recipients = _read(path)
    assert [bad.line for bad in recipients.bad] == [3, 4, 5, 6, 7]
    reasons = ("no @-sign", "is blank", "the same address as line 2", "closing quote", "in UTF-8")
    for bad, reason in zip(recipients.bad, reasons, strict=True):
        assert reason in bad.reason
    [part] = _parts(recipients)
    assert (part.lines, list(part.emails)) == ([2, 8], [ANN, CY])


def test_a_first_line_of_one_word_is_a_bad_line_and_not_left_out_unnamed(path: Path) -> None:
    path.write_text(f"nonsense\n{ANN}\n")
    assert [bad.line for bad in _read(path).bad] == [1]


@effort(deadline=None)
@given(count=st.integers(1, 60), size=st.integers(1, 25))
def test_the_parts_hold_every_recipient_once_and_in_order(count: int, size: int) -> None:
    recipients = _recipients([f"user{number}@example.com" for number in range(count)])
    parts = _parts(recipients, size)
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert [line for part in parts for line in part.lines] == list(range(1, count + 1))
    assert [len(part.emails) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert 1 <= len(parts[-1].emails) <= size


# Cells that a spreadsheet may hold beside an address. Python writes a carriage return without quotes: a line end.
_CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)


@effort(deadline=None)
@given(
    notes=st.lists(_CELLS, min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
)
def test_however_a_program_writes_the_same_recipients_they_are_the_same_campaign(
    tmp_path_factory: pytest.TempPathFactory, notes: list[str], delimiter: str, end: str, bom: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    emails = [f"user{place}@example.com" for place in range(len(notes))]
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter=delimiter, lineterminator=end)
    rows.writerow(["note", "email"])
    rows.writerows(zip(notes, emails, strict=True))
    path.write_bytes(text.getvalue().encode("utf-8-sig" if bom else "utf-8"))
    recipients = _read(path)
    assert recipients.bad == []
    assert [email for part in _parts(recipients, 3) for email in part.emails] == emails
    assert recipients.fingerprint == _recipients(emails).fingerprint


def _recipients(emails: list[str]) -> Recipients:
    recipients = Recipients()
    _opened.append(recipients)
    for line, email in enumerate(emails, 1):
        recipients.add(line, email)
    return recipients


_CAMPAIGNS = st.tuples(
    st.lists(st.sampled_from([ANN, BOB, CY]), unique=True, max_size=3),
    st.integers(1, 100),
    st.none() | st.sampled_from(["", "1", "x", "x again 1:y"]),
    st.none() | st.sampled_from(["", "1", "y"]),
)


@effort(deadline=None)
@given(one=_CAMPAIGNS, other=_CAMPAIGNS)
def test_two_campaigns_are_the_same_only_if_recipients_amount_label_and_name_are(
    one: tuple[list[str], int, str | None, str | None], other: tuple[list[str], int, str | None, str | None]
) -> None:
    names = [
        campaign(_recipients(emails).fingerprint, amount=amount, label=label, again=again)
        for emails, amount, label, again in (one, other)
    ]
    assert (names[0] == names[1]) == (one == other)


def test_each_part_of_a_campaign_has_a_key_of_its_own_that_the_service_takes() -> None:
    keys = {idempotency_key("0" * 64, number) for number in range(1, 101)}
    assert len(keys) == 100
    assert all(len(key) <= 255 and key.isascii() and " " not in key for key in keys)


def test_an_address_is_found_again_under_every_spelling() -> None:
    recipients = _recipients([ANN, BOB])
    assert recipients.line_of(parse("BOB@Example.com")) == 2
    assert recipients.line_of(parse(CY)) is None


@pytest.mark.parametrize("first", ["Ann,annexample.com", "Ann,"])
def test_a_first_line_that_may_have_lost_its_address_is_a_bad_line(path: Path, first: str) -> None:
    path.write_text(f"{first}\nBob,{BOB}\n")
    read = _read(path)
    assert ([bad.line for bad in read.bad], [list(part.emails) for part in _parts(read)]) == ([1], [[BOB]])


def test_a_line_so_long_that_only_its_start_is_looked_at_beforehand_tells_the_delimiter_too(path: Path) -> None:
    path.write_text(f"email;notes,remarks\n{ANN};{'x' * 70_000}\n")
    read = _read(path)
    assert (read.bad, [list(part.emails) for part in _parts(read)]) == ([], [[ANN]])


@pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
def test_the_line_that_tells_excel_the_delimiter_is_none(path: Path, delimiter: str) -> None:
    path.write_text(f"sep={delimiter}\nname{delimiter}email\nAnn{delimiter}{ANN}\n")
    read = _read(path)
    assert (read.bad, [part.lines for part in _parts(read)]) == ([], [[3]])


def test_a_cell_without_end_is_told_from_a_quote_without_end(path: Path) -> None:
    path.write_text(f"email\n{ANN}\n{'x' * 200_000}\n")
    with pytest.raises(Refused, match="from line 3 on: a cell has more than 131072 characters"):
        _read(path)


def test_a_number_of_a_column_may_be_no_number(path: Path) -> None:
    path.write_text(f"email\n{ANN}\n")
    with pytest.raises(Refused, match="has no column 1111"):
        _read(path, "1" * 5_000)


def test_a_bar_between_cells_is_no_part_of_an_address_unless_it_stands_in_one(path: Path) -> None:
    path.write_text(f"name|email\nAnn|{ANN}\nBob|{BOB}\n")
    assert [list(part.emails) for part in _parts(_read(path))] == [[ANN, BOB]]
    path.write_text(f"email\n{ANN}\n{BOB}\na|b@example.com\n")
    assert [list(part.emails) for part in _parts(_read(path))] == [[ANN, BOB, "a|b@example.com"]]


def test_a_workbook_is_called_one(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(Refused, match="is a workbook, as Excel saves it"):
        CsvFile(path)
