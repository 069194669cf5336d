"""Places: how many sends may wait, so that a thread is left for whoever does not."""

from app.api.places import PLACES, PLACES_OF_AN_ORGANIZATION, THREADS, Places


def test_one_organization_never_has_all_places() -> None:
    places = Places(at_most=5, of_an_organization=3)
    assert [places.take(1) for _ in range(5)] == [True, True, True, False, False]
    assert [places.take(2) for _ in range(3)] == [True, True, False]
    places.give_back(2)
    assert not places.take(1)
    places.give_back(1)
    assert places.take(1)


def test_a_place_given_back_is_free_for_anybody() -> None:
    places = Places(at_most=2, of_an_organization=2)
    assert places.take(1)
    assert places.take(2)
    assert not places.take(3)
    places.give_back(2)
    assert places.take(3)
    assert not places.take(2)


def test_who_goes_gives_back_one_place_and_not_those_of_others() -> None:
    places = Places(at_most=5, of_an_organization=3)
    assert [places.take(1) for _ in range(3)] == [True, True, True]
    places.give_back(1)
    assert [places.take(1) for _ in range(2)] == [True, False]


def test_threads_are_left_for_what_does_not_wait() -> None:
    assert THREADS - PLACES >= 64
    assert PLACES - PLACES_OF_AN_ORGANIZATION >= 64
