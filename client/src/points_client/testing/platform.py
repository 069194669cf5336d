"""The calls of the platform on the books of `FakePoints`: its users, and who they are paid by."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx

from points_client.testing.accounts import Refusal
from points_client.testing.answering import body_of, envelope
from points_client.testing.books import Books, said
from points_client.testing.fields import Faults, NotInFake, is_given, key_of, kind_of
from points_client.testing.lists import Asked, asked_for
from points_client.testing.organizations import Organizations
from points_client.testing.people import OF_PLATFORM, person_in

_BULK_MAX = 1_000
_NOTHING = {"transactions": 0, "amount": 0}
_Call = Callable[[httpx.Request, int], httpx.Response]
# A user to register, and the faults of it: if there are some, it is not one.
_Entry = tuple[Faults, dict[str, Any]]


class Platform:
    """What a platform key may call."""

    def __init__(self, books: Books) -> None:
        self._books, self._accounts = books, books.accounts
        organizations = Organizations(books)
        self._calls: tuple[tuple[str, str, _Call], ...] = (
            ("POST", "/users", self._register),
            ("POST", "/users/bulk", self._register_many),
            ("GET", "/users", self._list),
            ("GET", "/users/#", self._one),
            ("PATCH", "/users/#", self._change),
            ("POST", "/organizations", organizations.create),
            ("GET", "/organizations", organizations.list),
            ("GET", "/organizations/#", organizations.one),
            ("POST", "/organizations/#/refills", organizations.refill),
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer a call.

        Raises:
            Refusal: it is refused.
            NotInFake: `FakePoints` does not know it.
        """
        for method, path, call in self._calls:
            of_one = re.fullmatch(f"/v1/platform{path.replace('#', '([0-9]{1,18})')}", request.url.path)
            if of_one and method == request.method:
                if request.url.query and method != "GET":
                    raise NotInFake("parameters of this call")
                with self._books.lock:
                    return call(request, int(of_one[1]) if of_one.groups() else 0)
        raise NotInFake(f"{request.method} {request.url.path}")

    def _shown(self, user: Mapping[str, Any]) -> dict[str, Any]:
        """Return a user with the balance, which has no points of the sandbox."""
        return {**user, "balance": self._books.credited_to(user["id"]) if self._books.live else 0}

    def _claim(self, email: str) -> dict[str, Any]:
        return self._books.claim(email) if self._books.live else _NOTHING

    def _register(self, request: httpx.Request, _: int) -> httpx.Response:
        values = _without_faults(*person_in(body_of(request), OF_PLATFORM))
        self._books.issue_all()
        is_new = self._accounts.add(values, said(self._books.now()))
        if not is_new and (conflict := self._accounts.conflict_of(values)) is not None:
            raise conflict
        claimed = self._claim(values["email"]) if is_new else _NOTHING
        user = self._shown(_there(self._accounts.at(values["email"])))
        headers = {"Location": f"/v1/platform/users/{user['id']}"} if is_new else {}
        return envelope(201 if is_new else 200, data=user, additional={"claimed": claimed}, headers=headers)

    def _register_many(self, request: httpx.Request, _: int) -> httpx.Response:
        entries = _people_in(body_of(request))
        self._books.issue_all()
        firsts = _firsts(entries)
        # In the order in which the service registers them.
        created = [one for one in sorted(firsts, key=lambda one: key_of(one["email"])) if self._add(one)]
        outcomes = [self._outcome(place, entry, created) for place, entry in enumerate(entries)]
        return envelope(200, data={"users": outcomes})

    def _add(self, values: Mapping[str, Any]) -> bool:
        is_new = self._accounts.add(values, said(self._books.now()))
        if is_new:
            self._claim(values["email"])
        return is_new

    def _outcome(self, place: int, entry: _Entry, created: Sequence[object]) -> dict[str, Any]:
        faults, values = entry
        if faults:
            return {"user": None, "status": "conflict", "errors": faults}
        if (conflict := self._accounts.conflict_of(values)) is not None:
            errors = {f"users.{place}.{field}": sentences for field, sentences in conflict.errors.items()}
            return {"user": None, "status": "conflict", "errors": errors}
        is_new = any(values is one for one in created)
        user = self._shown(_there(self._accounts.at(values["email"])))
        return {"user": user, "status": "created" if is_new else "exists", "errors": None}

    def _list(self, request: httpx.Request, _: int) -> httpx.Response:
        asked = asked_for("users", request.url.params)
        if not isinstance(asked, Asked):
            raise Refusal(400, None, asked)
        rows, more = asked.page_of([one for one in reversed(self._accounts.users.values()) if asked.matches(one)])
        return envelope(200, data={"users": [self._shown(one) for one in rows], "next_cursor": more})

    def _one(self, request: httpx.Request, user_id: int) -> httpx.Response:
        _without_parameters(request)
        return envelope(200, data=self._shown(self._accounts.get(user_id)))

    def _change(self, request: httpx.Request, user_id: int) -> httpx.Response:
        changes = _without_faults(*person_in(body_of(request), OF_PLATFORM, changes=True))
        self._books.issue_all()
        is_known_anew = self._accounts.change(user_id, changes)
        user = self._accounts.get(user_id)
        claimed = self._claim(user["email"]) if is_known_anew else _NOTHING
        return envelope(200, data=self._shown(user), additional={"claimed": claimed})


def _without_faults(faults: Faults, values: dict[str, Any]) -> dict[str, Any]:
    if faults:
        raise Refusal(400, None, faults)
    return values


def _without_parameters(request: httpx.Request) -> None:
    if request.url.query:
        raise NotInFake("parameters of this call")


def _there(user: dict[str, Any] | None) -> dict[str, Any]:
    assert user is not None, "it is registered"
    return user


def _people_in(body: Mapping[str, Any]) -> list[_Entry]:
    """Return the users of a bulk, each with its faults by their places.

    Raises:
        Refusal: they are no list of 1 to 1,000.
    """
    faults = Faults()
    faults.add_unknown(body, ("users",))
    users = body.get("users")
    if not is_given(users):
        faults.add("users", "The users field is required.")
    elif not isinstance(users, list):
        faults.add("users", f"The users must be an array of users, but are {kind_of(users)}.")
    elif len(users) > _BULK_MAX:
        faults.add("users", f"There must be at most {_BULK_MAX} users, but there are {len(users)}.")
    if faults:
        raise Refusal(400, None, faults)
    assert isinstance(users, list), "it has no fault"
    return [_entry(entry, f"users.{place}") for place, entry in enumerate(users)]


def _entry(entry: object, key: str) -> _Entry:
    if not isinstance(entry, dict):
        return Faults({key: [f"The entry must be an object, but is {kind_of(entry)}."]}), {}
    faults, values = person_in(entry, OF_PLATFORM)
    return Faults({f"{key}.{name}": sentences for name, sentences in faults.items()}), values


def _firsts(entries: Sequence[_Entry]) -> list[dict[str, Any]]:
    """Return the entries to register: of two with one address or external id, the first."""
    firsts: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for faults, values in entries:
        if faults:
            continue
        names = {("email", key_of(values["email"]))}
        names |= {("external_id", values["external_id"])} if values["external_id"] is not None else set()
        if not names & seen:
            firsts.append(values)
            seen |= names
    return firsts
