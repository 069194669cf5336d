"""Rehearsing in the sandbox: its clock, and its own users."""

from datetime import datetime

from points_client._sync.calling import Caller
from points_client.reading import read
from points_client.requests import Call, moment
from points_client.results import SandboxTime, SandboxUser, read_sandbox_user


class Rehearsing:
    """`points.rehearsing`: for development keys only."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def set_clock(self, now: datetime | str) -> datetime:
        """Set the time of the sandbox, with a zone: forwards only, at most two years. `reset_sandbox` puts it back.

        Raises:
            Invalid: it is before the time of the sandbox, or too far ahead.
            Refused: the key is not a development key (403).
        """
        body = {"now": moment(now)}
        call = Call(method="POST", path="/v1/sandbox/clock", body=body, repeatable=False)
        return (self._caller.call(call, lambda answer: read(SandboxTime, answer.data))).now

    def register(self, email: str, first_name: str, last_name: str = "") -> SandboxUser:
        """Register a user of the sandbox, who claims what it holds for the address. Repeating it changes nothing.

        Raises:
            Refused: the address is registered with other names (409), or the key is not a development key (403).
        """
        body = {"email": email, "first_name": first_name, "last_name": last_name}
        return self._caller.call(Call(method="POST", path="/v1/sandbox/users", body=body), read_sandbox_user)
