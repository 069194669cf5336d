"""The organization and the mode that a call, a page or a message is about; and who does something."""

from typing import NamedTuple


class Scope(NamedTuple):
    """Whose rows, and of which mode: passed whole, so that neither is forgotten."""

    organization_id: int
    sandbox: bool


# Of a row of batches or reversals: the key `:sent_by` has sent it, or (null) whoever has.
SENT_BY = "(CAST(:sent_by AS bigint) IS NULL OR api_key_id = :sent_by)"

OPERATOR_LENGTH_MAX = 100
KINDS = MEMBER, PLATFORM_KEY, OPERATOR = "member", "platform_key", "operator"


class Author(NamedTuple):
    """Who does something, by one of the three; `operator` is the name of the system user who gives a command.

    None of them: nobody whom we know, such as somebody who gives a wrong password.
    """

    member_id: int | None = None
    platform_key_id: int | None = None
    operator: str | None = None


NOBODY = Author()


class AskedAuthor(NamedTuple):
    """Whose actions a list is of: those of a kind, or (`which`) of a single member, platform key or operator of it."""

    kind: str
    which: int | str | None
