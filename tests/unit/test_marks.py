"""Marks: what one web process sees of another's messages."""

from app.api.marks import Marks
from tests.unit.children import done_in_a_child


def test_a_mark_is_of_its_organization_and_ends_with_its_time() -> None:
    marks = Marks()
    assert marks.message(7, since=10.0) is None
    marks.put(7, message=3, now=11.0)
    assert [marks.message(number, since=10.0) for number in (6, 7, 8)] == [None, 3, None]
    assert marks.message(7, since=11.0) is None


def test_a_mark_is_removed_with_the_message_that_it_is_of_and_no_other() -> None:
    marks = Marks()
    marks.put(7, message=3, now=11.0)
    for message in (2, None):
        marks.remove(7, message=message)
        assert marks.message(7, since=10.0) == 3
    marks.remove(7, message=3)
    assert marks.message(7, since=10.0) is None


def test_organizations_that_meet_in_one_place_are_not_taken_for_each_other() -> None:
    marks = Marks()
    marks.put(7, message=3, now=11.0)
    for other in range(8, 20_000):
        marks.remove(other, message=3)
        assert marks.message(other, since=10.0) is None
    assert marks.message(7, since=10.0) == 3
    for other in range(8, 20_000):
        marks.put(other, message=other, now=11.0)
    assert marks.message(7, since=10.0) is None
    assert marks.message(19_999, since=10.0) == 19_999


def test_the_largest_numbers_have_room() -> None:
    marks = Marks()
    largest = 2**63 - 1
    marks.put(largest, message=largest, now=3e8)  # Ten years after the machine was started.
    assert marks.message(largest, since=2e8) == largest


def test_a_process_sees_what_another_has_marked() -> None:
    marks = Marks()
    done_in_a_child(lambda: marks.put(7, message=3, now=11.0))
    assert marks.message(7, since=10.0) == 3
