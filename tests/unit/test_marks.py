"""Marks: what one web process of a machine sees of another's messages."""

import os

from app.api.marks import Marks


def test_a_mark_is_of_its_organization_and_ends_with_its_time() -> None:
    marks = Marks()
    assert marks.message(7, now=10.0) is None
    marks.put(7, message=3, until=11.0)
    assert [marks.message(number, now=10.0) for number in (6, 7, 8)] == [None, 3, None]
    assert marks.message(7, now=11.0) is None


def test_a_mark_is_removed_with_the_message_that_it_is_of_and_no_other() -> None:
    marks = Marks()
    marks.put(7, message=3, until=11.0)
    for message in (2, None):
        marks.remove(7, message=message)
        assert marks.message(7, now=10.0) == 3
    marks.remove(7, message=3)
    assert marks.message(7, now=10.0) is None


def test_organizations_that_meet_in_one_place_are_not_taken_for_each_other() -> None:
    marks = Marks()
    marks.put(7, message=3, until=11.0)
    for other in range(8, 20_000):
        marks.remove(other, message=3)
        assert marks.message(other, now=10.0) is None
    assert marks.message(7, now=10.0) == 3
    for other in range(8, 20_000):
        marks.put(other, message=other, until=11.0)
    assert marks.message(7, now=10.0) is None
    assert marks.message(19_999, now=10.0) == 19_999


def test_the_largest_numbers_have_room() -> None:
    marks = Marks()
    largest = 2**63 - 1
    marks.put(largest, message=largest, until=3e8)  # Ten years after the machine was started.
    assert marks.message(largest, now=2e8) == largest


def test_a_process_sees_what_another_has_marked() -> None:
    marks = Marks()
    child = os.fork()
    if not child:
        marks.put(7, message=3, until=11.0)
        os._exit(0)
    os.waitpid(child, 0)
    assert marks.message(7, now=10.0) == 3
