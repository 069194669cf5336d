"""Names of organizations and users, as operators give them."""

from app.errors import Refused
from app.values.utf8 import is_utf8

LENGTH_MAX = 255


def checked(what: str, name: str, *, may_be_blank: bool = False) -> str:
    """Return a trimmed name; `what` begins the sentence of a refusal.

    Raises:
        Refused: blank, too long, or with characters that PostgreSQL cannot store.
    """
    name = name.strip()
    if not (name or may_be_blank) or len(name) > LENGTH_MAX:
        raise Refused(f"{what} must have 1 to {LENGTH_MAX} characters, but has {len(name)}.")
    if "\0" in name:
        raise Refused(f"{what} must not contain a NUL character.")
    if not is_utf8(name):
        raise Refused(f"{what} is not in UTF-8.")
    return name
