"""When two sends under one idempotency key are the same: when they mean the same."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.unit.bodies import accepted, body_with


def test_bodies_that_differ_in_any_value_mean_different_things() -> None:
    bodies = [
        body_with(),
        body_with(amount=11),
        body_with(amount=101),
        body_with(atomic=True),
        body_with(amount=1, atomic=True),
        body_with(amount=1),
        body_with(label="-"),
        body_with(label="+"),
        body_with(label="a@example.com"),
        body_with(label="A@example.com"),
        body_with(recipients=["b@example.com"]),
        body_with(recipients=["a@example.com", "b@example.com"]),
        body_with(recipients=["b@example.com", "a@example.com"]),
        body_with(recipients=["a@b.co", "mx@c.de"]),
        body_with(recipients=["a@b.com", "x@c.de"]),
        body_with(recipients=["b@example.com"], label="a@example.com"),
    ]
    assert len({accepted(body).meaning() for body in bodies}) == len(bodies)


def test_sends_for_other_days_or_another_moment_mean_different_things() -> None:
    one, moment = accepted(body_with()), datetime(2026, 2, 1, tzinfo=UTC)
    sends = [one, replace(one, hold_days=3), replace(one, hold_days=30), replace(one, send_at=moment)]
    sends += [replace(one, hold_days=3, send_at=moment)]
    assert len({send.meaning() for send in sends}) == len(sends)


@pytest.mark.parametrize(
    ("label", "meaning"),
    [
        (None, "99fe2849baa5783427c8ac240cc959446783cec5addfaaff54bd8947cf4b66d5"),
        ("L", "f4089b43264fba72742a8cd9369fbaf2f59df2b4e6b58c88b52ed494160c9a88"),
    ],
)
def test_a_body_means_the_same_in_every_version(label: str | None, meaning: str) -> None:
    """Keys are kept for 30 days, so a retry may come after the version that has accepted it was replaced."""
    body = body_with(amount=10, recipients=["ann@example.com", "bob@example.com"], label=label)
    assert accepted(body).meaning().hex() == meaning
