"""Many callers at once, through real workers: the books balance to the point."""

import itertools
import random
import uuid
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import text

from tests.service.inside import Organization, Service


def test_of_thirty_two_callers_who_each_want_the_whole_balance_one_gets_it(service: Service) -> None:
    caller = service.organization(1_000)
    body = {"recipients": ["a@example.com", "b@example.com"], "amount": 500, "atomic": True}
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: service.send(caller.live, body), range(32)))
    assert {answer.status_code for answer in answers} == {201}
    assert sorted(answer.json()["data"]["amount"] for answer in answers) == [0] * 31 + [1_000]
    assert service.balance(caller.live) == 0


def test_mixed_sends_of_several_organizations_at_once_leave_the_books_balanced(service: Service) -> None:
    choice = random.Random(20260131)  # noqa: S311  # Repeatable, not secret.
    mark = uuid.uuid4().hex
    emails = [f"{number}.{mark}@example.com" for number in range(60)]
    for email in emails[:20]:
        service.account(email)
    callers = [service.organization(balance) for balance in (500, 5_000, 50_000)]

    def send(number: int, caller: Organization) -> int:
        key = caller.development if number % 3 == 0 else caller.live
        recipients = choice.sample(emails, choice.randint(1, 40))
        body = {"recipients": recipients, "amount": choice.randint(1, 30), "atomic": number % 5 == 0}
        if number % 2:
            amounts = {email: choice.randint(1, 30) for email in recipients}
            items = [{"email": email, "amount": amount, "reference": email} for email, amount in amounts.items()]
            body = {"items": items, "atomic": number % 5 == 0, "expect": {"amount": sum(amounts.values())}}
        return service.send(key, body).status_code

    def register(email: str) -> int:
        service.account(email)
        return 201

    with ThreadPoolExecutor(32) as pool:
        sends = [
            pool.submit(send, number, caller)
            for number, caller in enumerate(itertools.islice(itertools.cycle(callers), 200))
        ]
        registrations = [pool.submit(register, email) for email in emails[20:40]]
        statuses = {work.result() for work in [*sends, *registrations]}
    assert statuses == {201}
    audited = service.json("audit")
    assert audited["balanced"] is True
    assert audited["breaches"] == []
    with service.connection() as connection:
        deadlocks = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        assert connection.execute(deadlocks).scalar_one() == 0
    for caller in callers:
        assert service.balance(caller.live) >= 0
