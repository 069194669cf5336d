"""`FakePoints` as a sign-up service tests against it: what is held for an address is claimed by its registration."""

import asyncio

import httpx
import pytest

from points_client import AsyncPlatformPoints, Claimed, Invalid, NotAuthorized, PlatformPoints, Points, Refused
from points_client.testing import KEY, LIVE_KEY, PLATFORM_KEY, URL, FakePoints, NotInFake

ADA, BOB, EVE = "ada@example.com", "bob@example.com", "eve@example.com"


def test_a_send_to_nobody_yet_is_held_and_claimed_by_the_registration_once() -> None:
    fake = FakePoints(balance=100, users=[BOB], live=True)
    with Points(LIVE_KEY, URL, transport=fake) as points, PlatformPoints(PLATFORM_KEY, URL, transport=fake) as platform:
        sent = points.send(recipients=[ADA.upper(), BOB], amount=10)
        assert [one.state for one in sent.transactions] == ["held", "credited"]
        ada = platform.users.register(ADA, "Ada", "Lovelace", external_id="customer-1")
        assert (ada.balance, ada.claimed) == (10, Claimed(transactions=1, amount=10))
        fake.answers_lost = 1  # A retry of the sign-up finds the user.
        again = platform.users.register(ADA, "Ada", "Lovelace", external_id="customer-1")
        assert (again.id, again.balance, again.claimed) == (ada.id, 10, Claimed(transactions=0, amount=0))
        [claimed] = points.transactions.list(email=ADA)
        assert (claimed.state, claimed.recipient and claimed.recipient.id) == ("credited", ada.id)
        points.send(recipients=[ADA, EVE], amount=5)
        moved = platform.users.change(ada.id, email=EVE, first_name="Augusta")
        assert (moved.email, moved.balance, moved.claimed) == (EVE, 20, Claimed(transactions=1, amount=5))
        [first, *_] = points.transactions.list(email=ADA)
        assert first.recipient is not None
        assert first.recipient.first_name == "Augusta"
        assert platform.users.get(ada.id).balance == 20
        assert [one.id for one in platform.users.list(page_size=1)] == [ada.id, 1]
        assert [one.balance for one in platform.users.list(external_id="customer-1")] == [20]
        assert [one.email for one in platform.users.list(email=BOB.upper())] == [BOB]
        with pytest.raises(Refused) as taken:
            platform.users.register(BOB, "Robert")
        assert (taken.value.status, taken.value.code, set(taken.value.errors)) == (409, "user_conflict", {"email"})
        with pytest.raises(Refused):
            platform.users.get(99)
    assert fake.balance == 70


def test_a_bulk_names_whom_it_leaves_out_by_place() -> None:
    fake = FakePoints(users=[BOB], live=True)
    with Points(LIVE_KEY, URL, transport=fake) as points, PlatformPoints(PLATFORM_KEY, URL, transport=fake) as platform:
        points.send(recipients=[ADA], amount=7)
        people = [
            {"email": ADA, "first_name": "Ada", "external_id": "1"},
            {"email": BOB, "first_name": "Robert"},
            {"email": EVE, "first_name": "Eve", "external_id": "1"},
            {"email": "nobody", "first_name": ""},
            {"email": ADA.upper(), "first_name": "Ada", "external_id": "1"},
        ]
        outcomes = platform.users.register_many(people)
        assert [one.status for one in outcomes] == ["created", "conflict", "conflict", "conflict", "exists"]
        assert [one.user and one.user.balance for one in outcomes] == [7, None, None, None, 7]
        assert [list(one.errors or ()) for one in outcomes[1:4]] == [
            *(["users.1.email"], ["users.2.external_id"], ["users.3.email", "users.3.first_name"])
        ]
        with pytest.raises(Invalid) as invalid:
            platform.users.register_many([])
        assert set(invalid.value.errors) == {"users"}


def test_the_sandbox_pays_a_user_of_the_platform_no_points() -> None:
    fake = FakePoints(balance=100)
    with Points(KEY, URL, transport=fake) as points, PlatformPoints(PLATFORM_KEY, URL, transport=fake) as platform:
        points.send(recipients=[ADA], amount=10)
        ada = platform.users.register(ADA, "Ada")
        assert (ada.balance, ada.claimed) == (0, Claimed(transactions=0, amount=0))
        [sent] = points.send(recipients=[ADA], amount=10).transactions
        assert (sent.sandbox, sent.state, platform.users.get(ada.id).balance) == (True, "credited", 0)


def test_billing_refills_once() -> None:
    fake = FakePoints(balance=100, live=True)
    with PlatformPoints(PLATFORM_KEY, URL, transport=fake) as platform:
        fake.answers_lost = 1
        booked = platform.organizations.refill(1, 50, reference="invoice-7")
        assert (booked.balance, fake.balance) == (150, 150)
        assert platform.organizations.refill(1, 50, reference="invoice-7") == booked
        with pytest.raises(Refused) as other:
            platform.organizations.refill(1, 51, reference="invoice-7")
        assert other.value.code == "refill_conflict"
        shop = platform.organizations.create("Shop", balance=7, held_days=30)
        assert platform.organizations.refill(shop.id, 3).balance == 10
        assert platform.organizations.get(shop.id).balance == 10
        assert [one.id for one in platform.organizations.list(page_size=1)] == [shop.id, 1]


def test_each_call_takes_its_kind_of_key_and_what_is_not_known_is_not_guessed() -> None:
    fake = FakePoints(live=True)
    with Points(PLATFORM_KEY, URL, transport=fake) as points, pytest.raises(Refused) as wrong:
        points.organization()
    assert wrong.value.code == "wrong_key"
    with PlatformPoints(LIVE_KEY, URL, transport=fake) as platform, pytest.raises(Refused) as wrong:
        platform.users.get(1)
    assert wrong.value.code == "wrong_key"
    with Points(KEY, URL, transport=fake) as points, pytest.raises(NotAuthorized):
        points.organization()
    with Points(LIVE_KEY, URL, transport=fake) as points, pytest.raises(NotInFake):
        points.reset_sandbox()
    with PlatformPoints(PLATFORM_KEY, URL, transport=fake) as platform, pytest.raises(NotInFake):
        list(platform.events.list())


def test_the_platform_meets_the_faults_that_a_test_asks_for() -> None:
    fake = FakePoints(live=True)
    fake.faults.append(httpx.Response(503, headers={"Retry-After": "0"}))

    async def register() -> int:
        async with AsyncPlatformPoints(PLATFORM_KEY, URL, transport=fake) as platform:
            return (await platform.users.register(ADA, "Ada")).id

    assert asyncio.run(register()) == 1
