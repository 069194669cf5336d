"""When two sends under one idempotency key are the same: when they mean the same."""

import pytest

from tests.unit.bodies import accepted, body_with


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
