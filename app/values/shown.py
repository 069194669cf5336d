"""How a sentence shows a text that somebody has sent."""

_LENGTH_MAX = 40


def shown(text: str) -> str:
    """Return the text in quotation marks, cut where it is long, with ? for what cannot be seen; or “empty”."""
    if not text:
        return "empty"
    cut = text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}…"
    return f"“{''.join(character if character.isprintable() else '?' for character in cut)}”"
