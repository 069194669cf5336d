"""What a run draws: people, how their addresses are written, requests, and points."""

from typing import Any

import hypothesis.strategies as st

from tests.e2e.state_machine.model import Request

# Few people, so that they meet often; written in many ways, so that they must be known again.
PEOPLE = ("ada", "grace", "linus", "barbara", "ken", "Mixed.Case+tag", "o'neill", "дядя")
DRESSES = (str, str.upper, str.title, lambda text: f" \t{text}\r\n")

dresses: st.SearchStrategy[Any] = st.sampled_from(DRESSES)
people = st.sampled_from(PEOPLE)
points = st.sampled_from([30, 1, 10, 50, 100, 200, 500])
labels = st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=255))

# Points to take from each transaction; none: all that is left.
reversed_points = st.sampled_from([None, None, 1, 3, 20])

# Which of the things made so far is meant; it is taken modulo their number.
any_number = st.integers(0, 1_000)

# The recipients are people in some dress; their addresses are the run's to give.
requests = st.builds(
    Request,
    st.tuples(st.lists(people, min_size=1, max_size=5, unique=True), st.lists(dresses, min_size=5, max_size=5)).map(
        lambda drawn: [dress(person) for person, dress in zip(*drawn, strict=False)]
    ),
    amount=st.sampled_from([1, 2, 3, 5, 7, 10, 20, 40, 1_000_000_000]),
    atomic=st.booleans(),
    label=labels,
    own_amounts=st.one_of(st.none(), st.lists(st.sampled_from([None, 1, 2, 5, 30, 60]), min_size=5, max_size=5)),
    has_references=st.booleans(),
)
