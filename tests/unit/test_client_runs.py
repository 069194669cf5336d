"""A run of any length: streamed in parts, two at a time, and nothing that comes again is paid twice."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from points_client.testing import KEY, URL, FakePoints
from tests.client_halves import HALVES, points_of


class Counting(FakePoints):
    """Knows how many sends ran at the same time; the first is answered when a second has come."""

    def __init__(self) -> None:
        super().__init__()
        self.running = self.most = self.sends = 0
        self.second = threading.Event()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sends += 1
        self.running += 1
        self.most = max(self.most, self.running)
        if self.sends == 1:
            assert self.second.wait(30)
        self.second.set()
        answer = super().handle_request(request)
        self.running -= 1
        return answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await asyncio.to_thread(self.handle_request, request)


@pytest.mark.parametrize("half", HALVES)
def test_a_run_is_streamed_with_two_parts_on_their_way(half: str) -> None:
    fake, read = Counting(), []

    def emails() -> Iterator[str]:
        for number in range(100):
            read.append(number)
            yield f"{number}@example.com"

    with points_of(half, KEY, URL, transport=fake) as points:
        sent = points.send_all(emails(), run="r", amount=1, part_size=10)
        assert read == []
        assert next(sent).email == "0@example.com"
        assert len(read) == 20, "two parts were read, and no more"
        assert [one.email for one in sent] == [f"{number}@example.com" for number in range(1, 100)]
    assert (fake.most, fake.sends) == (2, 10)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("part_size", [2, 10], ids=["two parts", "one part"])
@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["a@b.cc", "c@b.cc", "d@b.cc", " A@b.cc "], r"items\.3\.email is the same address as items\.0\.email"),
        (
            [{"email": "a@b.cc", "reference": "r"}, "b@b.cc", {"email": "c@b.cc", "reference": "r"}],
            r"items\.2\.reference is the same as items\.0\.reference",
        ),
        ([{"email": "a@b.cc", "reference": "r"}, "b@b.cc", "a@b.cc"], r"items\.2\.email is the same"),
    ],
    ids=["an address", "a reference", "an address without its reference"],
)
def test_what_comes_again_is_refused_wherever_it_stands(
    items: list[Any], words: str, part_size: int, half: str
) -> None:
    fake = FakePoints(balance=9)
    paid: list[str] = []
    with points_of(half, KEY, URL, transport=fake) as points:
        run = points.send_all(items, run="r", amount=1, part_size=part_size)
        with pytest.raises(ValueError, match=words):
            paid.extend(iter(lambda: next(run).email, None))
    assert paid == [one["email"] for one in fake.transactions]
    assert len(paid) == (2 if part_size == 2 else 0)


@pytest.mark.parametrize("half", HALVES)
def test_an_address_may_come_again_with_references_and_where_it_is_allowed(half: str) -> None:
    items = [{"email": "a@b.cc", "reference": f"r-{number}"} for number in range(4)]
    with points_of(half, KEY, URL, transport=FakePoints()) as points:
        assert len(list(points.send_all(items, run="r", amount=1, part_size=2))) == 4
        twice = points.send_all(["a@b.cc", "b@b.cc", "a@b.cc"], run="s", amount=1, part_size=2, allow_repeats=True)
        assert len(list(twice)) == 3
