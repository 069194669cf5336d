"""The platform as a caller: its key, and the calls that the tests make with it."""

from dataclasses import dataclass
from typing import Any

import httpx

from tests.contract.calls import Key, success
from tests.service.up import Service


def platform(service: Service, *scopes: str, name: str | None = None) -> "Platform":
    """Make a platform key with these scopes, or return one with all; under a name it is always another."""
    if scopes or name:
        options = [word for scope in scopes for word in ("--scope", scope)]
        made = service.json("platform-keys", "create", name or "Tests", *options)
    else:
        made = service.platform_key
    return Platform(service, made["key"], made["id"])


@dataclass(frozen=True)
class Platform(Key):
    """A program of the platform."""

    id: int

    def register(self, email: str, first_name: str = "Ada", last_name: str = "Lovelace", **more: Any) -> httpx.Response:
        body = {"email": email, "first_name": first_name, "last_name": last_name, **more}
        return self.call("POST", "/v1/platform/users", json=body)

    def registered(self, email: str, *names: str, **more: Any) -> dict[str, Any]:
        """Register a new user and return it."""
        user: dict[str, Any] = success(self.register(email, *names, **more), 201)
        return user

    def bulk(self, users: Any) -> httpx.Response:
        return self.call("POST", "/v1/platform/users/bulk", json={"users": users})

    def user(self, user_id: int) -> dict[str, Any]:
        user: dict[str, Any] = success(self.get(f"/v1/platform/users/{user_id}"))
        return user

    def entries(self, user_id: int, **query: Any) -> list[dict[str, Any]]:
        """Return all entries of a user."""
        return self.listed(f"platform/users/{user_id}/entries", **query)

    def change(self, user_id: int, **changes: Any) -> httpx.Response:
        return self.call("PATCH", f"/v1/platform/users/{user_id}", json=changes)


def claimed(answer: httpx.Response) -> tuple[int, int]:
    """Return how many transactions an answer says were claimed, and the points of them."""
    told = answer.json()["additional_data"]["claimed"]
    assert set(told) == {"transactions", "amount"}
    return told["transactions"], told["amount"]
