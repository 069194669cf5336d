"""Rehearsing with `FakePoints`: the reserved recipients, the clock and the users, as in the sandbox."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from points_client.testing.accounts import Refusal
from points_client.testing.books import DOMAIN, Books, said
from points_client.testing.fields import Faults, NotInFake, is_given, key_of, kind_of
from points_client.testing.people import OF_SANDBOX, person_in

AHEAD_MAX = timedelta(days=731)


def reserved_in(emails: list[str]) -> set[str]:
    """Return the names of the reserved recipients among some addresses."""
    return {key.removesuffix(f"@{DOMAIN}") for key in map(key_of, emails) if key.endswith(f"@{DOMAIN}")}


def clock(books: Books, body: Mapping[str, Any]) -> dict[str, Any]:
    """Set the time of the books, and return it.

    Raises:
        Refusal: it is at fault, before their time, or too far ahead.
        NotInFake: it is written in a way that `FakePoints` cannot judge.
    """
    faults = Faults()
    faults.add_unknown(body, ("now",))
    value = body.get("now")
    if not is_given(value):
        faults.add("now", "The now field is required.")
    elif not isinstance(value, str):
        faults.add("now", f"The now must be a string with a time, but is {kind_of(value)}.")
    if faults:
        raise Refusal(400, None, faults)
    try:
        now = datetime.fromisoformat(str(value)).astimezone(UTC)
    except ValueError:
        raise NotInFake("a time of this form") from None
    real = datetime.now(UTC)
    if now < books.now():
        sentence = f"The now must not be before the time of the sandbox, {said(books.now())}: a reset puts it back."
        raise Refusal(400, None, {"now": [sentence]})
    if now > real + AHEAD_MAX:
        sentence = f"The now must be at most {AHEAD_MAX.days} days ahead, until {said(real + AHEAD_MAX)}"
        raise Refusal(400, None, {"now": [f"{sentence}, but is {said(now)}."]})
    books.ahead = now - real
    return {"now": said(now)}


def register(books: Books, body: Mapping[str, Any]) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Register a user, and return the status, the user and what was claimed.

    Raises:
        Refusal: a field is at fault, or the address is registered with other names.
    """
    faults, values = person_in(body, OF_SANDBOX)
    if faults:
        raise Refusal(400, None, faults)
    with books.lock:
        books.issue_all()
        user, is_new = books.accounts.add_to_sandbox(values, said(books.now()))
        claimed = books.claim(values["email"]) if is_new else {"transactions": 0, "amount": 0}
    return 201 if is_new else 200, user, claimed
