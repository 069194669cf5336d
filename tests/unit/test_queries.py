"""The query of a list: what is taken, and every fault of it in one answer, each under its parameter."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import MultiDict

from app.errors import InvalidRequest
from app.pages import cursors
from app.pages.filters import CursorPosition, Filters
from app.pages.queries import PageRequest, parse_page_request
from tests.unit.conftest import CALLER

NOTHING_ASKED = Filters(organization_id=7, sandbox=False)
NAMES = ("limit", "cursor", "email", "batch", "created_from", "created_to", "debited", "credited", "allocated")


def parse(*pairs: tuple[str, str]) -> PageRequest:
    return parse_page_request("transactions", MultiDict(pairs).to_dict(flat=False), CALLER)


def sentences_of(*pairs: tuple[str, str]) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as caught:
        parse(*pairs)
    assert all(len(sentences) == 1 for sentences in caught.value.faults.values())
    return {name: sentences[0] for name, sentences in caught.value.faults.items()}


def faults_of(*pairs: tuple[str, str]) -> set[str]:
    found = sentences_of(*pairs)
    assert all(sentence.startswith(f"The {name} parameter must ") for name, sentence in found.items())
    return set(found)


def test_nothing_asked_is_the_first_hundred_of_everything() -> None:
    assert parse() == PageRequest(filters=NOTHING_ASKED, start=None, limit=100)


def test_everything_asked_is_read() -> None:
    asked = parse(
        *(("limit", "1000"), ("email", " Ada@Example.com "), ("batch", "42"), ("debited", "true")),
        *(("created_from", "2026-01-31T11:30:00+02:00"), ("created_to", "2026-02-01T00:00:00.000001Z")),
        *(("credited", "false"), ("allocated", "false")),
    )
    assert asked.limit == 1_000
    assert asked.filters == Filters(
        organization_id=7,
        sandbox=False,
        email_key="ada@example.com",
        batch_id=42,
        created_from=datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
        created_to=datetime(2026, 2, 1, 0, 0, 0, 1, tzinfo=UTC),
        debited=True,
        credited=False,
        allocated=False,
    )


def test_a_cursor_is_taken_with_the_filters_it_was_made_with_whatever_the_limit() -> None:
    place = CursorPosition(None, 131_072)
    filters = Filters(organization_id=7, sandbox=False, email_key="ada@example.com")
    cursor = cursors.encode("transactions", filters, place)
    assert parse(("email", "ADA@example.com"), ("cursor", cursor), ("limit", "3")).start == place
    assert faults_of(("email", "bob@example.com"), ("cursor", cursor)) == {"cursor"}
    assert faults_of(("cursor", cursor)) == {"cursor"}
    with pytest.raises(InvalidRequest):
        parse_page_request("batches", {"email": ["ada@example.com"], "cursor": [cursor]}, CALLER)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T09:30:00.1Z", datetime(2026, 1, 31, 9, 30, 0, 100_000, tzinfo=UTC)),
        ("2026-01-31T09:30:00.123456000+01:00", datetime(2026, 1, 31, 8, 30, 0, 123_456, tzinfo=UTC)),
        ("2026-01-31t09:30:00z", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2026-01-31T09:30Z", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
    ],
)
def test_a_time_may_be_written_as_other_languages_write_it(text: str, moment: datetime) -> None:
    filters = parse(("created_from", text), ("created_to", text)).filters
    assert (filters.created_from, filters.created_to) == (moment, moment)


@pytest.mark.parametrize(
    ("text", "after", "before"),
    [
        ("2026-01-31T09:30:00.1234567Z", (30, 0, 123_457), (30, 0, 123_456)),
        ("2026-01-31T09:30:00.123456001Z", (30, 0, 123_457), (30, 0, 123_456)),
        ("2026-01-31T10:30:59.999999999+01:00", (31, 0, 0), (30, 59, 999_999)),
    ],
)
def test_a_bound_of_more_decimals_than_a_row_has_lets_through_just_the_rows_within_it(
    text: str, after: tuple[int, int, int], before: tuple[int, int, int]
) -> None:
    filters = parse(("created_from", text), ("created_to", text)).filters
    assert filters.created_from == datetime(2026, 1, 31, 9, *after, tzinfo=UTC)
    assert filters.created_to == datetime(2026, 1, 31, 9, *before, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-02-30T00:00:00Z", "must be a date, a time and a zone that exist, but is “2026-02-30T00:00:00Z”."),
        ("2026-01-31T25:30:00+02:00", "a zone that exist, but is “2026-01-31T25:30:00+02:00”."),
        (
            "2026-01-31T09:30:00+25:00",
            "an offset of whole quarters of an hour from -12:00 to +14:00, but is “2026-01-31T09:30:00+25:00”.",
        ),
        ("2026-01-31", "with its zone, such as 2026-01-31T09:30:00Z, but is “2026-01-31”."),
        ("2026-01-31T09:30:00 02:00", "A + before a zone is written %2B."),
    ],
)
def test_a_time_that_is_none_is_told_why(text: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(("created_from", text))
    assert caught.value.faults["created_from"][0].endswith(words)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("limit", value) for value in ("", "0", "-1", "+1", " 1", "1 ", "1.0", "1e2", "abc", "1001", "9" * 30, "٣")),
        *(("cursor", value) for value in ("", "x", "null", "é", "A" * 38, "A" * 37 + "=", "A" * 5_000)),
        *(("email", value) for value in ("", " ", "ada", "a@b@c", "a..b@example.com", "a\0@example.com")),
        *(("batch", value) for value in ("", "0", "-1", "abc", "1.0", str(2**63), "9" * 400)),
        *(("created_from", value) for value in ("", "yesterday", "2026-01-31", "2026-01-31T09:30:00", "1769851800")),
        *(
            ("created_from", value)
            for value in ("2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T24:01:00Z")
        ),
        *(("created_to", value) for value in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00")),
        *(
            ("created_to", value)
            for value in ("2026-01-31T09:30:00 02:00", "2026-01-31T09:30:00Z\n", "0000-01-01T00:00Z")
        ),
        *(("created_to", value) for value in ("2026-01-31T09:30:00+99:00", "2026-01-31T09:30:60Z")),
        *((flag, value) for flag in ("debited", "credited", "allocated") for value in ("", "1", "t", "yes", "null")),
    ],
)
def test_a_value_of_another_form_is_a_fault_of_its_parameter(name: str, value: str) -> None:
    assert faults_of((name, value)) == {name}


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("True", True), ("false", False), ("FALSE", False)])
def test_a_flag_may_be_written_as_other_languages_write_it(text: str, flag: bool) -> None:
    assert parse(("debited", text)).filters.debited is flag


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("limit", "0", "must be an integer from 1 to 1000, but is “0”."),
        ("limit", "9" * 30_000, f"must be an integer from 1 to 1000, but is “{'9' * 40}…”."),
        ("debited", "", "must be true or false, but is empty."),
    ],
)
def test_a_sentence_says_what_was_seen(name: str, value: str, words: str) -> None:
    assert sentences_of((name, value)) == {name: f"The {name} parameter {words}"}


def test_an_empty_cursor_does_not_start_the_list_again() -> None:
    words = "must be the next_cursor of an earlier answer, and is left out for the first page."
    assert sentences_of(("cursor", "")) == {"cursor": f"The cursor parameter {words}"}


def test_all_faults_are_reported_at_once() -> None:
    assert faults_of(*((name, "?") for name in NAMES)) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_given_twice_is_a_fault_even_with_one_value(name: str) -> None:
    assert faults_of((name, "1"), (name, "1")) == {name}


def test_where_a_plus_has_come_as_a_blank_it_is_said_how_to_write_one() -> None:
    assert "%2B" in sentences_of(("email", "ada b@example.com"))["email"]
    assert "%2B" not in sentences_of(("email", " ada "))["email"]


def test_other_parameters_are_faults_that_name_the_nearest_known_one() -> None:
    found = sentences_of(("sandbox", "true"), ("create_from", "2026-01-31T09:30:00Z"), ("Limit", "1"), ("", ""))
    assert set(found) == {"sandbox", "create_from", "Limit", "query"}
    assert found["create_from"].endswith("did you mean created_from?")
    assert found["Limit"].endswith("did you mean limit?")


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.text())))
def test_whatever_is_asked_is_read_or_refused(pairs: list[tuple[str, str]]) -> None:
    try:
        faults = set[str]() if parse(*pairs).limit <= 1_000 else {"limit"}
    except InvalidRequest as error:
        faults = set(error.faults)
    assert faults <= {name for name, _ in pairs}
