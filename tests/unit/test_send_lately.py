"""The plan of `points send` tells who of the list was sent the same lately, before anybody is asked."""

import re
from pathlib import Path

import pytest

from tests.unit.paying_front import NOBODY, PayingFront


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("email,amount\n" + "".join(f"p{number}@example.com,5\n" for number in range(5)))
    return path


def lately(told: str) -> str:
    """Return the sentence."""
    [found] = re.findall(r"^Sent lately +(.*)$", told, re.MULTILINE)
    return str(found)


def test_the_sentences_of_all_parts_are_one_with_the_batches_that_matter_most(front: PayingFront, people: Path) -> None:
    front.recipients_max = 3
    batches = [{"batch_id": number, "recipients": 6 - number, "issued_at": None} for number in range(1, 6)]
    front.sent_before = NOBODY | {"same": 2, "same_label": 1, "batch_count": 5, "batches": batches}
    assert lately(front.shown(people, "--label", "Spring")) == (
        "4 the same points with the same label, 2 other points with the same label, within 30 days, in batch 1 (10),"
        " batch 2 (8), batch 3 (6) and others. They would be paid again."
    )
    assert [key[-2:] for key in front.asked_about] == ["-1", "-2"], "each part under the key of its send"


def test_nobody_and_a_list_that_is_only_sent_again_need_no_sentence(front: PayingFront, people: Path) -> None:
    assert "Sent lately" not in front.shown(people)
    front.sent_before = NOBODY | {"same": 5, "batch_count": 1}
    assert "Sent lately" not in front.shown(people)
    assert len(front.asked_about) == 1
