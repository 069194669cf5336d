"""The organizations of `FakePoints`: the one whose key it has, and those that the platform has made beside it."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import httpx

from points_client.testing.accounts import Refusal
from points_client.testing.answering import body_of, envelope, idempotency_key_of
from points_client.testing.books import Books, said
from points_client.testing.fields import INT64_MAX, Faults, NotInFake, is_given, kind_of, shown_number
from points_client.testing.lists import Asked, asked_for
from points_client.testing.people import name_fault, reference_fault

_SANDBOX_BALANCE = 1_000_000
# What no organization has before the platform changes it, which the fake does not know.
_NO_APPROVAL = {"approval_above": None, "approval_of": "console"}
# The most of each field, the least, and its unit.
_NUMBERS = {
    "balance": (INT64_MAX, 0, "points"),
    "sandbox_balance": (INT64_MAX, 0, "points"),
    "held_days": (3_650, 1, "days"),
    "low_balance": (INT64_MAX, 1, "points"),
}


class Organizations:
    """Organization 1 has the books of the key; the others have balances alone."""

    def __init__(self, books: Books) -> None:
        self._books, self._refill_ids = books, count(1)
        self._others: dict[int, dict[str, Any]] = {}
        self._refills: dict[int, list[tuple[str | None, dict[str, Any]]]] = {}

    def _all(self) -> dict[int, dict[str, Any]]:
        """Return all organizations by their ids, as the platform sees them."""
        books = self._books
        mode, other = ("", "sandbox_") if books.live else ("sandbox_", "")
        left = _SANDBOX_BALANCE if books.live else 0
        first = books.organization()
        balances = {f"{mode}balance": first["balance"], f"{mode}last_refill": first["last_refill"]}
        balances |= {f"{other}balance": left, f"{other}last_refill": left}
        return {1: {**first, **balances, "held_days": None, "low_balance": None, **_NO_APPROVAL}, **self._others}

    def create(self, request: httpx.Request, _: int) -> httpx.Response:
        """Answer the call that makes one."""
        body, faults = body_of(request), Faults()
        faults.add_unknown(body, ("name", *_NUMBERS))
        sentences = {"name": name_fault("name", body.get("name"))}
        sentences |= {name: _number_fault(name, body.get(name), *bounds) for name, bounds in _NUMBERS.items()}
        _raise(faults, sentences)
        values = {name: body[name] if is_given(body.get(name)) else None for name in _NUMBERS}
        live, sandbox = values["balance"] or 0, values["sandbox_balance"]
        sandbox = _SANDBOX_BALANCE if sandbox is None else sandbox
        number = 2 + len(self._others)
        made = {"id": number, "name": body["name"].strip(), "is_disabled": False, "is_suspended": False}
        made |= {"balance": live, "last_refill": live, "created_at": said(self._books.now())}
        made |= {"sandbox_balance": sandbox, "sandbox_last_refill": sandbox}
        self._others[number] = made | {name: values[name] for name in ("held_days", "low_balance")} | _NO_APPROVAL
        headers = {"Location": f"/v1/platform/organizations/{number}"}
        return envelope(201, data=self._others[number], headers=headers)

    def list(self, request: httpx.Request, _: int) -> httpx.Response:
        """Answer the list, newest first."""
        asked = asked_for("organizations", request.url.params)
        if not isinstance(asked, Asked):
            raise Refusal(400, None, asked)
        rows, more = asked.page_of([*reversed(self._all().values())])
        return envelope(200, data={"organizations": rows, "next_cursor": more})

    def one(self, request: httpx.Request, number: int) -> httpx.Response:
        """Answer with one."""
        if request.url.query:
            raise NotInFake("parameters of this call")
        self._books.issue_all()
        return envelope(200, data=self._found(number))

    def _found(self, number: int) -> dict[str, Any]:
        found = self._all().get(number)
        if found is None:
            raise Refusal(404, "not_found", {"organization": [f"There is no organization {number}."]})
        return found

    def refill(self, request: httpx.Request, number: int) -> httpx.Response:
        """Answer a refill: booked once for each idempotency key and each reference."""
        body, key, faults = body_of(request), idempotency_key_of(request), Faults()
        faults.add_unknown(body, ("amount", "sandbox", "reference"))
        amount, sandbox = body.get("amount"), body.get("sandbox")
        is_wrong = is_given(sandbox) and not isinstance(sandbox, bool)
        of_amount = _number_fault("amount", amount, INT64_MAX, 1, "points")
        sentences = {
            "amount": of_amount if is_given(amount) else "The amount field is required.",
            "sandbox": f"The sandbox field must be true or false, but is {kind_of(sandbox)}." if is_wrong else None,
            "reference": reference_fault("reference", body.get("reference")),
        }
        _raise(faults, sentences)
        self._books.issue_all()
        self._found(number)
        asked = {"sandbox": bool(sandbox), "amount": amount, "reference": body.get("reference") or None}
        booked = self._refills.setdefault(number, [])
        for its_key, one in booked:
            if key is not None and its_key == key:
                if any(one[name] != value for name, value in asked.items()):
                    sentence = "This Idempotency-Key was used with another body; another call needs a new key."
                    raise Refusal(422, "idempotency_key_reused", {"idempotency_key": [sentence]})
                return envelope(201, data=one, headers={"Idempotency-Replayed": "true"})
        for _, one in booked:
            if asked["reference"] is not None and one["reference"] == asked["reference"]:
                _require_same(one, asked)
                return envelope(200, data=one)
        one = {"id": next(self._refill_ids), **asked, "balance": self._put(number, asked)}
        one["created_at"] = said(self._books.now())
        booked.append((key, one))
        return envelope(201, data=one)

    def _put(self, number: int, asked: Mapping[str, Any]) -> int:
        """Add the points of a refill to the balance of its mode, and return it."""
        mode, amount = "sandbox_" if asked["sandbox"] else "", asked["amount"]
        if self._found(number)[f"{mode}balance"] + amount > INT64_MAX:
            raise NotInFake("a balance beyond 64 bits")
        if number != 1:
            self._others[number][f"{mode}balance"] += amount
            balance: int = self._others[number][f"{mode}balance"]
            self._others[number][f"{mode}last_refill"] = balance
            return balance
        if asked["sandbox"] is self._books.live:
            raise NotInFake("refills of the mode that its key does not have")
        return self._books.refill(amount)


def _require_same(one: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    if any(one[name] != asked[name] for name in ("amount", "sandbox")):
        mode = "sandbox" if one["sandbox"] else "live"
        sentence = (
            f"The reference {one['reference']} is that of a refill of {one['amount']} {mode} points, booked before."
            " Nothing is booked now. Another refill needs another reference."
        )
        raise Refusal(409, "refill_conflict", {"reference": [sentence]})


def _number_fault(name: str, value: object, most: int, least: int, unit: str) -> str | None:
    if not is_given(value):
        return None
    if type(value) is not int:
        return f"The {name} must be an integer, but is {kind_of(value)}."
    if least <= value <= most:
        return None
    return f"The {name} must be between {least} and {most} {unit}, but is {shown_number(value)}."


def _raise(faults: Faults, sentences: Mapping[str, str | None]) -> None:
    for name, sentence in sentences.items():
        if sentence is not None:
            faults.add(name, sentence)
    if faults:
        raise Refusal(400, None, faults)
