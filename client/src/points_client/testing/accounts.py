"""The users of `FakePoints`: those of the platform, and beside them those of the sandbox."""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from points_client.testing.fields import NotInFake, key_of


class Refusal(Exception):
    """A call that is refused, with the status, the code and the errors of the answer."""

    def __init__(self, status: int, code: str | None, errors: dict[str, list[str]]) -> None:
        super().__init__(str(errors))
        self.status, self.code, self.errors = status, code, errors


def conflict(field: str, sentence: str) -> Refusal:
    return Refusal(409, "user_conflict", {field: [sentence]})


class Accounts:
    """Users in memory. A user of the platform is stored as its JSON without the balance, which the books tell."""

    def __init__(self, emails: Iterable[str], made_at: str) -> None:
        self._ids = count(1)
        self.users: dict[int, dict[str, Any]] = {}
        # By the key of their address.
        self._of_platform: dict[str, dict[str, Any]] = {}
        self._of_sandbox: dict[str, dict[str, Any]] = {}
        # As transactions show them.
        self._shown: dict[int, dict[str, Any]] = {}
        for email in emails:
            names = {"email": email.strip(), "first_name": "First", "last_name": "Last", "external_id": None}
            self.add(names, made_at)

    def paid_at(self, email: str) -> dict[str, Any] | None:
        """Return who is paid at an address, as a transaction shows it; None: the points are held."""
        user = self._of_sandbox.get(key_of(email)) or self.at(email)
        return None if user is None else self._shown[user["id"]]

    def add_to_sandbox(self, values: Mapping[str, Any], made_at: str) -> tuple[dict[str, Any], bool]:
        """Register a user of the sandbox; return it, and whether it is new.

        Raises:
            Refusal: the address is registered with other names.
        """
        known = self._of_sandbox.get(key_of(values["email"]))
        if known is not None:
            if any(known[name] != values[name] for name in ("first_name", "last_name")):
                raise conflict("email", "The email is that of a user with other names.")
            return known, False
        user = self._of_sandbox[key_of(values["email"])] = self._new(values, made_at)
        return user, True

    def add(self, values: Mapping[str, Any], made_at: str) -> bool:
        """Register a user of the platform, unless the address or the external id is registered; tell whether it was."""
        if self.at(values["email"]) is not None or self.named(values["external_id"]) is not None:
            return False
        user = self._of_platform[key_of(values["email"])] = self._new(values, made_at)
        self.users[user["id"]] = user
        return True

    def _new(self, values: Mapping[str, Any], made_at: str) -> dict[str, Any]:
        user = {"id": next(self._ids), **values, "created_at": made_at}
        self._shown[user["id"]] = {name: user[name] for name in ("id", "first_name", "last_name")}
        return user

    def at(self, email: str) -> dict[str, Any] | None:
        """Return the user of the platform at an address."""
        return self._of_platform.get(key_of(email))

    def named(self, external_id: str | None) -> dict[str, Any] | None:
        """Return the user of the platform with an external id."""
        return next((one for one in self.users.values() if external_id and one["external_id"] == external_id), None)

    def conflict_of(self, values: Mapping[str, Any]) -> Refusal | None:
        """Return what keeps a user from being registered with these values; None if it is, or could be."""
        known = self.at(values["email"])
        if known is None:
            is_taken = self.named(values["external_id"]) is not None
            return conflict("external_id", "The external_id is that of another user.") if is_taken else None
        if any(known[name] != values[name] for name in ("first_name", "last_name")):
            return conflict("email", f"The email is that of user {known['id']}, who has other names.")
        if known["external_id"] != values["external_id"]:
            has = "none" if known["external_id"] is None else "another"
            return conflict("external_id", f"The email is that of user {known['id']}, whose external_id is {has}.")
        return None

    def change(self, user_id: int, changes: Mapping[str, Any]) -> bool:
        """Change a user of the platform, and tell whether it is known by another address now.

        Raises:
            Refusal: there is no such user, or a value is another user's.
        """
        user = self.get(user_id)
        others = {
            "email": self.at(changes["email"]) if "email" in changes else None,
            "external_id": self.named(changes.get("external_id")),
        }
        taken = [name for name, other in others.items() if other is not None and other is not user]
        if len(taken) > 1:
            raise NotInFake("which of two conflicts is told")
        for name in taken:
            raise conflict(name, f"The {name} is that of another user.")
        before = key_of(user["email"])
        user |= changes
        # In place: the transactions that the user has show the new names too.
        self._shown[user_id] |= {name: user[name] for name in ("first_name", "last_name")}
        self._of_platform[key_of(user["email"])] = self._of_platform.pop(before)
        return key_of(user["email"]) != before

    def get(self, user_id: int) -> dict[str, Any]:
        """Return a user of the platform.

        Raises:
            Refusal: there is none.
        """
        if user_id not in self.users:
            raise Refusal(404, "not_found", {"user": [f"There is no user {user_id}."]})
        return self.users[user_id]
