"""Reading lists as people have them: what is taken for an address, what is named, and what stops the reading."""

import io
from collections.abc import Sequence

import pytest

from app.errors import InvalidAddress, Refused
from app.recipient_files.cells import address_in
from app.recipient_files.list_file import ListFile
from app.recipient_files.text import opened

ANN, BOB, CY, DAN = "ann@example.com", "bob@example.com", "cy@example.com", "dan@example.com"


def _read(content: str | bytes, column: str | None = None) -> tuple[list[str], list[int]]:
    """Return the addresses that are taken, and the lines that are named."""
    raw = content if isinstance(content, bytes) else content.encode()
    with opened(io.BytesIO(raw), "people.csv") as text:
        file = ListFile(text, column=column)
        place = file.address_column()
        taken, named = [], []
        for row in file.rows(place):
            try:
                if row.fault is not None:
                    raise InvalidAddress(row.fault)
                taken.append(address_in(row.cells[place], is_unicode=file.is_unicode).text)
            except InvalidAddress:
                named.append(row.line)
    return taken, named


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_every_encoding_line_end_and_delimiter_is_read(encoding: str, end: str, delimiter: str) -> None:
    rows = [["Name", "E-Mail", "Straße"], ["Müller", f" {ANN} ", ""], [f'"Lee{delimiter} Bob"', BOB, "x"]]
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    content = mark + end.join(delimiter.join(row) for row in rows)
    assert _read(content.encode(encoding)) == ([ANN, BOB], [])


@pytest.mark.parametrize(
    ("content", "taken", "named"),
    [
        # A list without a heading is one of addresses alone.
        (f"{ANN}\n{BOB}", [ANN, BOB], []),
        (f"{ANN},\n{BOB}\n", [ANN, BOB], []),
        # What may be an address that was mistyped is no heading.
        (f"annexample.com\n{BOB}\n", [BOB], [1]),
        (f"ann.example.com\n{BOB}\n", [BOB], [1]),
        # Spellings of e-mail.
        (f"EMAIL\n{ANN}", [ANN], []),
        (f"e mail;x\n{ANN};1", [ANN], []),
        (f"E_Mail-Address;x\n{ANN};1", [ANN], []),
        (f"\u00a0E\u2011Mail\u200b,manager email\n{ANN},{BOB}", [ANN], []),
        (f'"mail","name"\n"{ANN}","Lee, ""A"""', [ANN], []),
        # Above the heading, and again below it.
        (f"Customers\n\n2026,March\nemail,name\n{ANN},Ann\n", [ANN], [1, 3]),
        (f"email,name\n{ANN},Ann\nemail,name\n{BOB},Bob\n", [ANN, BOB], [3]),
        (f"sep=;\nname;email\nAnn;{ANN}\n", [ANN], []),
        (f"sep=|\nname|email\nAnn|{ANN}\n", [ANN], []),
        # A cell that is worded like a heading is none.
        (f"email,name,contact\n,Bob,email\n{ANN},Ann,mail\n", [ANN], [2]),
        (f"email,name,contact\n{ANN},Ann,mail\n,Bob,email\n", [ANN], [3]),
        (f"email,phone,first,second\n{ANN},1,Phone,Email\n,,Phone,Email\n", [ANN], [3]),
        # Rows that do not fit.
        (f"name,manager_email,email\nByron, George,boss@example.com,{ANN}\nLee,boss@example.com,{BOB}", [BOB], [2]),
        ("name,manager_email,email\nByron, George,boss@example.com,\n", [], [2]),
        (f"name,manager_email,email,note\nByron, George,{DAN},{ANN}\nLee,{DAN},{BOB},\n", [BOB], [2]),
        (f"name,manager_email,email,note\nLee,{DAN},{BOB},\nByron, George,{DAN},{ANN}\n", [BOB], [3]),
        (
            f"name,manager_email,email,note\nLee,{DAN},{ANN},ask {DAN}\nKay,none,{BOB},x\nCy,,{CY},{DAN}\n",
            [ANN, BOB, CY],
            [],
        ),
        ("name,manager_email,email,\nByron, George,boss@example.com,george@example.com\n", [], [2]),
        (f"name,email,manager_email\n{ANN},boss@example.com\n", [], [2]),
        (f"email\n{ANN},{BOB}\n{CY}\n", [CY], [2]),
        (f"manager_email,\nE-Mail,name\n{BOB},{ANN},\n{CY},{DAN},\n", [], [1, 3, 4]),
        (f"email,name\n{ANN},Ann\nann.mail.example.com,Ann\nnone,Bob\n", [ANN], [3, 4]),
        (f"email,name\n{ANN},Ann\nTotal: 1\n", [ANN], [3]),
        (f"email,name\n{ANN},Ann\n,1\n", [ANN], [3]),
        # Cells that a spreadsheet leaves behind.
        (f"name,email,,\nAnn,{ANN},,\nBob,{BOB}\n,,,\n\n", [ANN, BOB], []),
        (f"email,name\n{ANN},Ann,,\n{BOB},Bob\n", [ANN, BOB], []),
        (f"email\n{ANN};\n{BOB};\n", [ANN, BOB], []),
        # Mixed delimiters.
        (f'name,email,note\nAnn,{ANN},"see; {BOB}; now"\n', [ANN], []),
        (f"email,name\n{ANN},Ann\n{BOB};Bob\n", [ANN], [3]),
        # Quotes.
        (f'name, email\n"Lee, Ann", "{ANN}"\n"Kay" ,"{BOB}" \n', [ANN, BOB], []),
        (f'name,email\n"Ann\nLee",{ANN}\nBob,{BOB}\n', [ANN, BOB], []),
        (f'email,note\n{ANN},"tall: 5\n{BOB},y\n{CY},z"\n{DAN},ok\n', [DAN], [2, 3, 4]),
        (f'email,note\n{ANN},"open\n{BOB},y\n{CY},"z"\n{DAN},ok\n', [DAN], [2, 3, 4]),
        (f'email,note\n{ANN},"a"x\n{BOB},"a ""b"" c"\n', [BOB], [2]),
        (f'email\n{ANN}\n"{BOB}\n', [ANN], [3]),
        (f'email\n"{ANN}\n{BOB}"\n{CY}\n', [CY], [2, 3]),
    ],
)
def test_each_address_is_taken_or_named_with_its_line(content: str, taken: list[str], named: list[int]) -> None:
    assert _read(content) == (taken, named)


_NOT_ONE = [f"{ANN}{between}{BOB}" for between in (", ", "; ", " ", "/")]
_NOT_ONE += [f"{before}{ANN}" for before in ("Ann <", "mailto:", "'", "=", '="', "email=", "#", "-", "*", "Ann|", "<")]
_NOT_ONE += [f'=HYPERLINK("mailto:{ANN}")', "a\ufffdn@example.com", "an\u200bn@example.com", "an\u00adn@example.com"]


@pytest.mark.parametrize("cell", [*_NOT_ONE, f"<{ANN}>", "ann@example.com.", "ann\uff20example.com"])
def test_a_cell_that_holds_more_or_else_than_one_address_is_not_guessed_at(cell: str) -> None:
    with pytest.raises(InvalidAddress):
        address_in(cell)


@pytest.mark.parametrize("cell", [f"\u00a0{ANN}\u200b", f"\ufeff{ANN}\t", f"\u202a{ANN}\u202c", f" \u2060{ANN}\r\n"])
def test_what_cannot_be_seen_around_an_address_is_left_off(cell: str) -> None:
    assert address_in(cell).text == ANN


def test_what_is_not_in_unicode_is_read_for_sure_only_where_it_is_plain() -> None:
    """Windows-1252 cannot be told from its neighbours, in which other letters have these bytes."""
    assert _read(f"name,email\nMüller,{ANN}\nx,jür@example.com\n".encode("cp1252")) == ([ANN], [3])
    assert _read("email\njür@example.com\n") == (["jür@example.com"], [])


# Of each list what is said about its columns.
_STOPS = [
    *(("", "is empty"), ("\n \n,,\n", "is empty"), ("a,b\n1,2\n", "No column of people.csv holds e-mail addresses")),
    (f"recipient address,reply to email\n{ANN},{BOB}", "“recipient address” \\(1\\) and “reply to email” \\(2\\)"),
    (f"sender_email,recipient_contact\n{ANN},{BOB}", "“sender_email” \\(1\\) and “recipient_contact” \\(2\\)"),
    (f"Kunde,Adresse\nAnn,{ANN}\n", "“Adresse” \\(2\\) of people.csv may hold the addresses that are meant"),
    (f"{ANN},{BOB}\n", "column 1 and column 2 of people.csv"),
    # The only column may not be the one that is meant either.
    (f"sender_email\n{ANN}\n", "“sender_email” \\(1\\) of people.csv may hold the addresses that are meant"),
    (f"Reply to email;;\n{ANN};;\n", "“Reply to email” \\(1\\) of people.csv may hold"),
    (f"Left us\n\n{ANN}\n", "“Left us” \\(1\\) of people.csv may hold"),
    (f"mail,e-mail\n{ANN},{BOB}\n", "“mail” \\(1\\) and “e-mail” \\(2\\)"),
    (f"email;name,email\n{ANN},{BOB};{CY}\n", "may have commas or semicolons between its cells"),
    (f"x,email,y\nname,boss,email\nAnn,{BOB},{ANN}\n", "Lines 1 and 2 of people.csv both look like its heading"),
    (f"Made by {ANN}\nname,email\nBob,{BOB}\n", "Line 2 .* looks like its heading, but there are addresses above it"),
    (
        f"email,name\n{f'{ANN},x{chr(10)}' * 60}manager_email,E-Mail\n{BOB},{CY}\n",
        "Line 62 .* another heading, with",
    ),
    (
        f"name;email;city\n{f'x;{ANN};y{chr(10)}' * 60}E-Mail;Manager email;Name\n{BOB};{CY};x\n",
        "Line 62 .* another",
    ),
    (f"email\n{ANN}\nsender_email\n{BOB}\n", "Line 3 of people.csv looks like another heading"),
    (f"{ANN}\nsender_email\n{BOB}\n", "Line 2 of people.csv looks like another heading"),
    (f'email\n"{ANN}\n{BOB}\n', "from line 2 on: a quote is opened and never closed"),
    (f"email\n{ANN}\n{'x' * 200_000}\n", "from line 3 on: a cell has more than 131072 characters"),
    *((f"email\n{ANN}\n".encode(form), "NUL characters") for form in ("utf-16-le", "utf-32")),
    (b"\xff\xfe" + f"email\n{ANN}\n\n".encode(), "begins as UTF-16 and is not"),
    (b"\xef\xbb\xbfemail\nM\xfcller\n", "begins as UTF-8 and is not"),
    (b"email\n\x81\n", "is neither in UTF-8 nor in Windows-1252"),
]
_STOPS_FOR = [
    (f"email,name,E-Mail\n{ANN},x,{BOB}\n", "email", "the column email twice: “email” \\(1\\) and “E-Mail” \\(3\\)"),
    (f"email\n{ANN}\n", "nonsense", "no column nonsense: its columns are “email”"),
    (f"email\n{ANN}\n", "2", "no column 2"),
    (f"email\n{ANN}\n", "1" * 5_000, "has no column 1111"),
]


@pytest.mark.parametrize(
    ("content", "column", "words"), [*((content, None, words) for content, words in _STOPS), *_STOPS_FOR]
)
def test_an_ambiguous_list_stops_with_a_sentence(content: str | bytes, column: str | None, words: str) -> None:
    with pytest.raises(Refused, match=words):
        _read(content, column)


@pytest.mark.parametrize(
    ("content", "column", "taken", "named"),
    [
        (f"email,to\n{ANN},{BOB}\n", "TO", [BOB], []),
        (f"email,to\n{ANN},{BOB}\n", "2", [BOB], []),
        (f"email,name,E-Mail\n{ANN},x,{BOB}\n", "3", [BOB], []),
        (f"name,contact.address\nAnn,{ANN}\n", "Contact.Address", [ANN], []),
        (f"name,2026\nAnn,{ANN}\n", "2026", [ANN], []),
        (f"sender_email\n{ANN}\n", "1", [ANN], [1]),
        (f"sender_email\n{ANN}\n", "Sender E-Mail", [ANN], []),
        (f"Kunde,Adresse\nAnn,{ANN}\n", "2", [ANN], [1]),
        (f"Report\nname;Reply To\nAnn;{ANN}\n", "reply-to", [ANN], [1]),
        (f"Lee;{ANN};1\nKay;{BOB};2\n", "2", [ANN, BOB], []),
        (f"Kunde,Adresse,Kontakt\nAnn,{ANN},mail\nBob,,mail\n", "2", [ANN], [1, 3]),
    ],
)
def test_a_column_is_taken_by_its_heading_or_number(
    content: str, column: str, taken: Sequence[str], named: Sequence[int]
) -> None:
    assert _read(content, column) == (taken, named)


def test_a_list_so_long_that_only_its_start_is_looked_at_beforehand_is_read_alike() -> None:
    many = [f"user{number}@example.com" for number in range(2_000)]
    rows = "".join(f'"{number}";"{email}";{"x" * 99}\n' for number, email in enumerate(many))
    assert _read(f"id;email;notes, remarks\n{rows}") == (many, [])


def test_a_cell_of_several_lines_is_read_wherever_it_is_in_a_long_list() -> None:
    """Lines are parsed a thousand at a time, and a cell may begin in one thousand and end in the next."""
    many = [f"user{number}@example.com" for number in range(3_000)]
    for first in (998, 999, 1_000, 1_999):
        notes = {first: '"two\nlines"', first + 500: '"a"x'}
        rows = "".join(f"{email},{notes.get(place, 'x')}\n" for place, email in enumerate(many))
        taken, named = _read(f"email,note\n{rows}")
        assert (taken, named) == ([email for email in many if email != many[first + 500]], [first + 500 + 3])
