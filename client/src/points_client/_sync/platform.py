"""`PlatformPoints`: the calls of one platform key."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import partial
from ssl import SSLContext
from typing import Any

import httpx

from points_client._sync.calling import Caller, Connected, as_
from points_client._sync.events import Events
from points_client._sync.paging import rows
from points_client.attempts import RETRIED, Wait
from points_client.platform_results import (
    Action,
    Entry,
    Key,
    NewKey,
    NewMember,
    PlatformOrganization,
    PlatformUser,
    Refill,
    RegisteredUser,
    read_outcomes,
    read_user,
)
from points_client.requests import PATIENCE_S, Call, key_of, path, query
from points_client.service_address import from_environment


class PlatformPoints(Connected):
    """A Points Issuing Service, called by the platform that runs it.

    Args:
        key: `pts_platform_…`.
        url: where the service is, such as `https://points.example.com`.
        patience_s, transport, ssl_context, on_wait, retried: as of `Points`.

    Every call may raise a `PointsError`: `Invalid`, `NotAuthorized`, `Refused`, or `NoAnswer`.

    Raises:
        ValueError: the key, the URL, or what the environment says of proxies and certificates is not valid.
    """

    def __init__(
        self,
        key: str,
        url: str,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.BaseTransport | None = None,
        ssl_context: SSLContext | None = None,
        on_wait: Callable[[Wait], object] | None = None,
        retried: AbstractSet[int] = RETRIED,
    ) -> None:
        options = {"transport": transport, "ssl_context": ssl_context, "on_wait": on_wait, "retried": retried}
        self._caller = caller = Caller(key, url, patience_s=patience_s, **options)  # type: ignore[arg-type]  # As named.
        self.users = Users(caller)
        self.organizations = Organizations(caller)
        self.events = Events(caller, "/v1/platform/events", rare="user.erased")

    @classmethod
    def from_env(cls, **options: Any) -> "PlatformPoints":
        """Return the client of the key in `POINTS_PLATFORM_KEY` and the URL in `POINTS_URL`; `options` as above.

        Raises:
            ValueError: one of them is not set or not valid.
        """
        return cls(from_environment("POINTS_PLATFORM_KEY"), from_environment("POINTS_URL"), **options)

    def actions(
        self,
        *,
        organization: int | None = None,
        by: str | None = None,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        page_size: int = 100,
    ) -> Iterator[Action]:
        """Yield who did what, newest first.

        Args:
            by: `member`, `platform_key` or `operator`, or one of them: `member:7`, `operator:ada`.
        """
        asked = query(organization=organization, by=by, created_from=created_from, created_to=created_to)
        where, size = "/v1/platform/actions", query(limit=page_size)
        return rows(self._caller, Action, where, "actions", {**asked, **size})


class Users:
    """`platform.users`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def register(
        self, email: str, first_name: str, last_name: str = "", *, external_id: str | None = None
    ) -> PlatformUser:
        """Register a user, who claims what is held for the address. Repeating it changes nothing.

        Raises:
            Refused: the address or the external id is registered with other values (409).
        """
        body = {"email": email, "first_name": first_name, "last_name": last_name, "external_id": external_id}
        return self._caller.call(Call(method="POST", path="/v1/platform/users", body=body), read_user)

    def register_many(self, users: Iterable[Mapping[str, Any]]) -> Sequence[RegisteredUser]:
        """Register 1 to 1,000 users, and return what became of each, in order. Repeating it changes nothing."""
        body = {"users": [*users]}
        return self._caller.call(Call(method="POST", path="/v1/platform/users/bulk", body=body), read_outcomes)

    def get(self, user_id: int) -> PlatformUser:
        """Return a user with the balance.

        Raises:
            Refused: there is no such user (404).
        """
        return self._caller.get(PlatformUser, path("platform/users", user_id), id=user_id)

    def list(
        self, *, email: str | None = None, external_id: str | None = None, page_size: int = 100
    ) -> Iterator[PlatformUser]:
        """Yield all users that match, newest first."""
        asked = query(email=email, external_id=external_id, limit=page_size)
        return rows(self._caller, PlatformUser, "/v1/platform/users", "users", asked)

    def entries(self, user_id: int, *, page_size: int = 100) -> Iterator[Entry]:
        """Yield what made the balance of a user, newest first. Their sum is the balance.

        Raises:
            Refused: there is no such user (404).
        """
        where = path("platform/users", user_id, "entries")
        return rows(self._caller, Entry, where, "entries", query(limit=page_size))

    def change(self, user_id: int, **changes: str | None) -> PlatformUser:
        """Change `email`, `first_name`, `last_name` or `external_id` of a user; a new address claims what it is due.

        Raises:
            Refused: there is no such user (404), or the address or the external id is another user's (409).
        """
        call = Call(method="PATCH", path=path("platform/users", user_id), body=changes)
        return self._caller.call(call, read_user)

    def erase(self, user_id: int) -> PlatformUser:
        """Erase a user for good, and return what is left. Repeating it goes on, or changes nothing.

        Raises:
            NoAnswer: it is not known whether it is finished. Make the same call again.
            Refused: there is no such user (404).
        """
        call = Call(method="POST", path=path("platform/users", user_id, "erase"))
        return self._caller.call(call, read_user)


class Organizations:
    """`platform.organizations`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, name: str, **values: int | None) -> PlatformOrganization:
        """Make an organization; `values`: `balance`, `sandbox_balance`, `held_days`, `low_balance`.

        Raises:
            NoAnswer: it is unknown whether it was made; look before you make it again.
        """
        body = {"name": name, **values}
        call = Call(method="POST", path="/v1/platform/organizations", body=body, repeatable=False)
        return self._caller.call(call, partial(as_, PlatformOrganization))

    def get(self, organization_id: int) -> PlatformOrganization:
        """Return an organization in both modes.

        Raises:
            Refused: there is no such organization (404).
        """
        where = path("platform/organizations", organization_id)
        return self._caller.get(PlatformOrganization, where, id=organization_id)

    def list(self, *, page_size: int = 100) -> Iterator[PlatformOrganization]:
        """Yield all organizations, newest first."""
        where, asked = "/v1/platform/organizations", query(limit=page_size)
        return rows(self._caller, PlatformOrganization, where, "organizations", asked)

    def change(self, organization_id: int, **changes: str | int | bool | None) -> PlatformOrganization:
        """Change `name`, `held_days`, `low_balance`, `approval_above`, `approval_of`, `is_suspended` or `is_disabled`.

        Raises:
            Refused: there is no such organization (404).
        """
        call = Call(method="PATCH", path=path("platform/organizations", organization_id), body=changes)
        return self._caller.call(call, partial(as_, PlatformOrganization, id=organization_id))

    def refill(
        self,
        organization_id: int,
        amount: int,
        *,
        sandbox: bool = False,
        reference: str | None = None,
        idempotency_key: str | None = None,
    ) -> Refill:
        """Put points into a balance, once for each idempotency key and each reference.

        Raises:
            NoAnswer: it is unknown whether it was booked. Make the same call again with `NoAnswer.key`.
            Invalid: the call has faults, or the key was used with another body.
            Refused: there is no such organization (404), or the reference is another refill's (409).
        """
        body = {"amount": amount, "sandbox": sandbox, "reference": reference}
        where = path("platform/organizations", organization_id, "refills")
        call = Call(method="POST", path=where, body=body, key=key_of(idempotency_key))
        return self._caller.call(call, partial(as_, Refill))

    def refills(self, organization_id: int, *, sandbox: bool = False, page_size: int = 100) -> Iterator[Refill]:
        """Yield the refills of one mode, newest first."""
        where = path("platform/organizations", organization_id, "refills")
        return rows(self._caller, Refill, where, "refills", query(sandbox=sandbox, limit=page_size))

    def create_key(
        self,
        organization_id: int,
        name: str | None = None,
        *,
        sandbox: bool = False,
        scopes: Sequence[str] | None = None,
        expires_at: str | None = None,
        batch_limit: int | None = None,
        daily_limit: int | None = None,
    ) -> NewKey:
        """Make a key of an organization; `sandbox`: a development key. Only this answer shows it.

        Its bounds are set now for good: its scopes, its end (a day such as `2026-12-31`, or a time with its zone), and
        the points of one batch and of one day in UTC.

        Raises:
            NoAnswer: it is unknown whether it was made. Look through `keys`, and revoke what nobody has.
            Refused: there is no such organization (404).
        """
        where = path("platform/organizations", organization_id, "keys")
        bounds = {"scopes": scopes, "expires_at": expires_at, "batch_limit": batch_limit, "daily_limit": daily_limit}
        body = {
            "name": name,
            "sandbox": sandbox,
            **{bound: value for bound, value in bounds.items() if value is not None},
        }
        call = Call(method="POST", path=where, body=body, repeatable=False)
        return self._caller.call(call, partial(as_, NewKey))

    def keys(self, organization_id: int, *, page_size: int = 100) -> Iterator[Key]:
        """Yield the keys of an organization, of both modes, revoked ones included, newest first."""
        where = path("platform/organizations", organization_id, "keys")
        return rows(self._caller, Key, where, "keys", query(limit=page_size))

    def revoke_key(self, organization_id: int, key_id: int) -> None:
        """Revoke a key of an organization at once. Repeating it changes nothing.

        Raises:
            Refused: the organization has no such key (404).
        """
        keys = path("platform/organizations", organization_id, "keys").removeprefix("/v1/")
        self._caller.call(Call(method="DELETE", path=path(keys, key_id)), lambda _: None)

    def add_member(
        self, organization_id: int, email: str, first_name: str, last_name: str = "", *, role: str
    ) -> NewMember:
        """Make a member for the console, and return the link to choose a password with.

        Raises:
            NoAnswer: it is unknown whether it was made.
            Refused: there is no such organization (404), or a member has the address (409).
        """
        body = {"email": email, "first_name": first_name, "last_name": last_name, "role": role}
        where = path("platform/organizations", organization_id, "members")
        call = Call(method="POST", path=where, body=body, repeatable=False)
        return self._caller.call(call, partial(as_, NewMember))
