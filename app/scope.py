"""The organization and the mode that a call, a page or a message is about."""

from typing import NamedTuple


class Scope(NamedTuple):
    """Whose rows, and of which mode: passed whole, so that neither is forgotten."""

    organization_id: int
    sandbox: bool
