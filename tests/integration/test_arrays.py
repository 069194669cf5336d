"""Arrays written by hand: PostgreSQL reads out of them what was put in."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from app.arrays import array, text_array
from app.database import bare_connection, together
from app.exchange import Statement

pytestmark = pytest.mark.usefixtures("database")

# What PostgreSQL's text can hold, with more of what means something in an array.
texts = st.text(
    st.one_of(st.sampled_from("\"\\\\{},' "), st.characters(exclude_characters="\0", codec="utf-8")), max_size=20
)
words = st.one_of(texts, st.sampled_from(["", "NULL", "null", "{}", "\\\\x00", " a "]))

often = effort(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _read(written: str, kind: str) -> object:
    with bare_connection() as connection, together(connection) as exchange:
        answer = exchange.ask(Statement(f"SELECT %(written)s::{kind}[]"), written=written)
    [(read,)] = answer.rows
    return read


@often
@given(values=st.lists(st.one_of(st.none(), words), max_size=8))
def test_texts_come_back_as_they_are(values: list[str | None]) -> None:
    assert _read(array(values), "text") == values


@often
@given(values=st.lists(words, max_size=8))
def test_texts_written_quickly_come_back_as_they_are_also_within_an_array(values: list[str]) -> None:
    assert _read(text_array(values), "text") == values
    assert _read(array([text_array(values), None]), "text") == [text_array(values), None]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, -1, 2**63 - 1, -(2**63), None], "bigint"),
        ([True, False, None], "boolean"),
        ([b"", b'\x00\xff"\\', None], "bytea"),
        ([], "bigint"),
    ],
)
def test_other_values_come_back_as_they_are(values: list[int | bytes | None], kind: str) -> None:
    assert _read(array(values), kind) == values
