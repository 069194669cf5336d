"""Two features meet in one batch, each two of them: whoever tells of the batch tells the same, at each step.

The audit of what they have left is that of the service's end.
"""

from contextlib import closing
from itertools import combinations
from pathlib import Path

import pytest

from tests.contract.agreement import agrees
from tests.contract.stories import FEATURES, IMPOSSIBLE, Story
from tests.service.up import Service

_PAIRS = [pair for pair in combinations(FEATURES, 2) if frozenset(pair) not in IMPOSSIBLE]
# Each feature with the next that it can meet; the others are more of the same.
_USUAL = [next(pair for pair in _PAIRS if pair[0] == feature) for feature in FEATURES[:-1]]


@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, id=" and ".join(pair), marks=[] if pair in _USUAL else pytest.mark.long) for pair in _PAIRS],
)
def test_each_two_features_are_told_alike_by_all(service: Service, tmp_path: Path, pair: tuple[str, str]) -> None:
    story = Story(service, frozenset(pair), tmp_path)
    with closing(story.browser):
        for done in story.tell():
            try:
                agrees(story, is_over=done == "over")
            except AssertionError as error:
                error.add_note(f"when it is {done}")
                raise


def test_every_pair_is_tried_or_impossible_for_a_reason() -> None:
    assert len(_PAIRS) + len(IMPOSSIBLE) == len(FEATURES) * (len(FEATURES) - 1) // 2
    assert all(IMPOSSIBLE.values())
