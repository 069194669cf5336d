"""Whatever list is given to `points send`: who stands in it is paid or named with a line, and nobody else is paid."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from tests.unit.paying_front import PayingFront

_TAGS = st.text("abcxyz0189", min_size=1, max_size=5)
_EMAILS = st.builds(
    "{}{}{}@{}".format,
    _TAGS,
    st.sampled_from(["", ".", "+", "_", "-", "o'"]),
    _TAGS,
    st.sampled_from(["example.com", "Mail.Example.ORG"]),
)
_LINE_END = re.compile(r"\r\n|\r|\n")
# Cells beside an address, without one, as people fill them.
_NOTES = st.text(st.characters(codec="cp1252", exclude_characters="\0@"), max_size=9)


@dataclass(kw_only=True)
class Written:
    """A list: its text, and the addresses that its e-mail column holds, each with the lines of its row."""

    text: str = ""
    lines: dict[str, set[int]] = field(default_factory=dict)

    def add(self, text: str, end: str, emails: Sequence[str] = ()) -> None:
        first = len(_LINE_END.split(self.text))
        lines = set(range(first, first + len(_LINE_END.split(text))))
        self.lines |= dict.fromkeys(emails, lines)
        self.text += text + end


@dataclass(frozen=True, kw_only=True)
class Form:
    """A way to write a table down."""

    delimiter: str
    end: str
    encoding: str
    heading: str
    place: int
    before: str
    quotes_all: bool
    trailing: int
    titles: Sequence[str]

    def row(self, cells: Sequence[str]) -> str:
        return self.joined([self.cell(cell) for cell in cells])

    def joined(self, cells: Sequence[str]) -> str:
        return self.delimiter.join([*cells, *[""] * self.trailing])

    def cell(self, text: str) -> str:
        must = self.quotes_all or any(mark in text for mark in ',;\t"\r\n') or text != text.strip()
        return self.before + ('"{}"'.format(text.replace('"', '""')) if must else text)


_FORMS = st.builds(
    Form,
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    heading=st.sampled_from(["email", "E-Mail", "E mail address", "MAIL", " e_mail "]),
    place=st.integers(0, 2),
    before=st.sampled_from(["", " ", "  "]),
    quotes_all=st.booleans(),
    trailing=st.integers(0, 2),
    titles=st.lists(st.sampled_from(["Customers", "", "as of March", "2026"]), max_size=2),
)


def _heading(form: Form) -> list[str]:
    cells = ["name", "manager_email"]
    return [*cells[: form.place], form.heading, *cells[form.place :]]


def _cells(form: Form, email: str, note: str, number: int) -> list[str]:
    cells = [note, f"boss{number}@example.com"]
    return [*cells[: form.place], email, *cells[form.place :]]


def _begin(form: Form) -> Written:
    written = Written()
    for title in form.titles:
        written.add(title, form.end)
    written.add(form.row(_heading(form)), form.end)
    return written


_EFFORT = effort(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


_FAULTY = "none comma short long two name mailto quote formula twice heading total blank hidden no-address swallowed"
_FAULTS = st.sampled_from(_FAULTY.split())


@_EFFORT
@given(
    form=_FORMS,
    rows=st.lists(st.tuples(_EMAILS, _NOTES, _FAULTS), min_size=1, max_size=8, unique_by=lambda row: row[0].lower()),
)
def test_whatever_is_wrong_with_a_list_who_stands_in_it_is_paid_or_named_and_nobody_else_is_paid(
    front: PayingFront, tmp_path_factory: pytest.TempPathFactory, form: Form, rows: list[tuple[str, str, str]]
) -> None:
    written = _begin(form)
    for number, (email, note, fault) in enumerate(rows):
        _add_faulty(written, form, email, note, fault, number)
    paid, named = _send(front, tmp_path_factory.mktemp("list"), written, form)
    whom = [email.lower() for email in paid]
    for email, lines in written.lines.items():
        assert email.lower() in whom or lines & named, f"{email} in {lines}"
    assert len(whom) == len(set(whom))
    # A second address of a cell is none of these; one behind a stray quote may stand in a row of its own after all.
    assert set(whom) <= {email.lower() for email in written.lines if not email.startswith("second.")}


def _add_faulty(written: Written, form: Form, email: str, note: str, fault: str, number: int) -> None:
    good = form.row(_cells(form, email, note, number))
    in_its_cell = {
        "two": f"{email}; second.{email}",
        "name": f"Ada <{email}>",
        "mailto": f"mailto:{email}",
        "formula": f"={email}",
        "hidden": email if form.encoding == "cp1252" else f"\u00a0{email}\u200b",
    }
    behind = {
        "twice": form.row(_cells(form, email.upper(), note, number)),
        "heading": form.row(_heading(form)),
        "total": f"Total{form.delimiter}{number}",
        "blank": "",
    }
    one_line = re.sub(r"[\r\n\"]", " ", note)
    rows = {
        # A delimiter without quotes shifts what follows.
        "comma": form.joined(["Byron", one_line, *_cells(form, email, "", number)]),
        "short": form.delimiter.join([email, f"boss{number}@example.com"]),
        "long": f"{good}{form.delimiter}{number}",
        "no-address": form.joined(["Byron", one_line, *_cells(form, "", "", number)]),
        "quote": f'"{good}',
    }
    cell = in_its_cell.get(fault, email)
    text = rows.get(fault, form.row(_cells(form, cell, note, number)))
    emails = {"two": [email, f"second.{email}"], "no-address": []}.get(fault, [email])
    if fault == "swallowed":  # A quote that was never meant reaches to one in the next row.
        written.add(form.delimiter.join([email, "x", '"open']), form.end, [email])
        text, emails = form.delimiter.join([f"next.{email}", "x", 'close"']), [f"next.{email}"]
    written.add(text, form.end, emails)
    if fault in behind:
        written.add(behind[fault], form.end)


def _send(front: PayingFront, folder: Path, written: Written, form: Form) -> tuple[list[str], set[int]]:
    """Return who was paid and which lines were named; all of them when the list was refused with a sentence."""
    path = folder / "people.csv"
    path.write_bytes(written.text.encode(form.encoding))
    front.forget()
    front.balance = 10**12
    done = front.run(path, "--amount", "1", "--again", folder.name)
    if done.status not in (0, 3):
        assert done.told
        assert front.paid == []
        return [], set().union(*written.lines.values())
    named = {line["line"] for line in done.document["bad_lines"]}
    assert (done.status == 3) == bool(named)
    return list(front.paid), named
