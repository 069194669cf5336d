"""Names of organizations and users, as operators give them."""

from app.errors import Refused

LENGTH_MAX = 255


def checked(what: str, name: str) -> str:
    """Return a name without the blanks around it; `what` begins the sentence that refuses it.

    Raises:
        Refused: it is blank or too long, or holds what PostgreSQL's text cannot.
    """
    name = name.strip()
    if not 1 <= len(name) <= LENGTH_MAX:
        raise Refused(f"{what} must have 1 to {LENGTH_MAX} characters, but has {len(name)}.")
    if name.isprintable():  # Nearly all are, and a surrogate and a NUL are not.
        return name
    if "\0" in name:
        raise Refused(f"{what} must not contain a NUL character.")
    try:
        name.encode()
    except UnicodeEncodeError:  # Python reads bytes that are not UTF-8 as lone surrogates.
        raise Refused(f"{what} is not in UTF-8.") from None
    return name
