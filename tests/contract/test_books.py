"""The books after many callers at once: each transaction is counted against a plain model of the rules."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.calls import (
    HELD,
    PAID,
    UNPAID,
    Key,
    Organization,
    address,
    addresses,
    flags,
    organization,
    success,
)
from tests.deadline import until
from tests.service.up import Service

_CALLERS, _SENDS = 12, 180
_BALANCES = (6_000, 1_000_000)
_SANDBOX_BALANCE = 1_000_000
_REFILL = 777


@dataclass(frozen=True)
class Sent:
    """A send, and the batch that it was answered with."""

    key: Key
    body: dict[str, Any]
    batch_id: int


@dataclass(frozen=True)
class Load:
    """What was sent, and to whom: `early` and `late` had accounts before it and during it, `never` have none."""

    organizations: list[Organization]
    early: list[str]
    late: list[str]
    sent: list[Sent]

    def batches(self, key: Key) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return each body of a key and its batch, in the order of issue, which the list of transactions tells."""
        body_of = {one.batch_id: one.body for one in self.sent if one.key == key}
        batches = {batch_id: key.batch(batch_id) for batch_id in body_of}
        batch_of = {one["id"]: batch_id for batch_id, batch in batches.items() for one in batch["transactions"]}
        oldest_first = reversed(key.listed("transactions", limit=1_000))
        order = dict.fromkeys(batch_of[row["id"]] for row in oldest_first)
        assert order.keys() == body_of.keys()
        return [(body_of[batch_id], batches[batch_id]) for batch_id in order]


@pytest.fixture(scope="module")
def load(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Send from many callers at once, in both modes, while users are registered, a refill comes and the books are read.

    Most sends have an idempotency key and are made twice at once.
    """
    choice = random.Random(20261125)  # noqa: S311  # Repeatable, not secret.
    early, late, never = (addresses(20) for _ in range(3))
    _register(service, tmp_path_factory.mktemp("early"), early)
    made = [organization(service, balance) for balance in _BALANCES]
    plans = []
    for number in range(_SENDS):
        sender = made[number % 2]
        body = {
            "recipients": choice.sample([*early, *late, *never], choice.randint(1, 40)),
            "amount": choice.randint(1, 60),
            "atomic": number % 5 == 0,
        }
        key = sender.development if number % 4 < 2 else sender.live
        plans.append((key, body, f"load-{number}" if number % 3 else None, number % 7 == 0))
    with ThreadPoolExecutor(_CALLERS + 3) as pool:
        beside = [
            pool.submit(service.json, "audit"),
            pool.submit(made[0].refill, _REFILL),
            pool.submit(_register, service, tmp_path_factory.mktemp("late"), late),
        ]
        sent = list(pool.map(lambda plan: _send(*plan), plans))
        assert beside[0].result()["balanced"] is True
        assert [one.result() for one in beside[1:]] == [None, None]
    for one in sent:
        until(lambda one=one: one.key.is_issued(one.batch_id))
    return Load(made, early, late, sent)


def _register(service: Service, folder: Path, emails: list[str]) -> None:
    file = folder / "users.csv"
    file.write_text("email,first_name,last_name\n" + "".join(f"{email},Ada,Lovelace\n" for email in emails))
    assert service.json("users", "import", str(file))["registered"] == len(emails)


def _send(key: Key, body: dict[str, Any], idempotency_key: str | None, waits: bool) -> Sent:
    headers = {} if waits else {"Prefer": "respond-async"}
    if idempotency_key is None:
        answers = [key.send(body, **headers)]
    else:
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda _: key.send(body, Idempotency_Key=idempotency_key, **headers), range(2)))
    assert {answer.status_code for answer in answers} <= {201, 202}
    [batch_id] = {answer.json()["additional_data"]["batch_id"] for answer in answers}
    return Sent(key, body, batch_id)


@pytest.mark.parametrize("is_live", [True, False], ids=["live", "sandbox"])
@pytest.mark.parametrize("number", [0, 1])
def test_every_transaction_follows_from_the_balance_before_it(load: Load, number: int, is_live: bool) -> None:
    sender = load.organizations[number]
    key = sender.live if is_live else sender.development
    balance = _BALANCES[number] if is_live else _SANDBOX_BALANCE
    refills = [_REFILL] if is_live and number == 0 else []
    for body, batch in load.batches(key):
        transactions, amount = batch["transactions"], body["amount"]
        first = transactions[0]
        before = first["organization"]["balance"] + (amount if first["debited"] else 0)
        if before != balance:  # A refill came between, and it comes once.
            refills.remove(before - balance)
        paid = min(len(body["recipients"]), before // amount)
        if body["atomic"] and paid < len(body["recipients"]):
            paid = 0
        assert [one["email"] for one in transactions] == body["recipients"]
        assert [one["debited"] for one in transactions] == [place < paid for place in range(len(transactions))]
        balance = before
        for one in transactions:
            balance -= amount if one["debited"] else 0
            assert (one["amount"], one["organization"]["balance"]) == (amount, balance)
            assert one["sandbox"] is not is_live
        assert (batch["amount"], batch["current_balance"]) == (paid * amount, balance)
    assert key.balance == balance + sum(refills)


def test_whoever_has_an_account_was_credited_each_debited_transaction_once(service: Service, load: Load) -> None:
    accounts, credited = {*load.early, *load.late}, Counter[str]()
    for key in (sender.live for sender in load.organizations):
        # What was issued while its recipient was being registered is claimed a little later.
        until(lambda key=key: accounts.isdisjoint(_held(key)))
        for row in key.listed("transactions", limit=1_000):
            assert flags([row]) == [(PAID if row["email"] in accounts else HELD) if row["debited"] else UNPAID]
            credited[row["email"]] += row["amount"] if row["credited"] else 0
    for email in [*load.early[:2], *load.late[:2]]:
        assert service.points_of(email) == credited[email] > 0


def _held(key: Key) -> set[str]:
    return {row["email"] for row in key.listed("transactions", debited="true", allocated="false", limit=1_000)}


def test_the_books_balance(service: Service, load: Load) -> None:
    found = service.json("audit")
    assert (found["balanced"], found["breaches"]) == (True, [])
    assert found["batches"] >= len(load.sent)


def test_of_sixteen_callers_who_each_want_the_whole_balance_one_gets_it(service: Service) -> None:
    caller = organization(service, 1_000).live
    body = {"recipients": [address(), address()], "amount": 500, "atomic": True}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: success(caller.send(body), 201), range(16)))
    assert sorted(answer["amount"] for answer in answers) == [0] * 15 + [1_000]
    assert caller.balance == 0
