"""When two sends under one idempotency key are the same: when they mean the same."""

import pytest

from tests.unit.bodies import accepted, body_with


@pytest.mark.parametrize(
    ("label", "meaning"),
    [
        (None, "cf6c18d3678f002663666d3392c468245a55bce9c2a3accd3c3f19f1f1f1a516"),
        ("L", "8f6d18fe73358a9bdc05f66a504a26651a1daad3803df087f41b840c021fbcfd"),
    ],
)
def test_a_body_means_the_same_in_every_version(label: str | None, meaning: str) -> None:
    """Keys are kept for 30 days, so a retry may come after the version that has accepted it was replaced."""
    body = body_with(amount=10, recipients=["ann@example.com", "bob@example.com"], label=label)
    assert accepted(body).meaning().hex() == meaning
