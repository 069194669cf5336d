"""Files to download: the name under which a browser saves an answer."""

import unicodedata
from urllib.parse import quote

from flask import Response

# What RFC 8187 leaves as it is, beside letters and digits.
_AS_IT_IS = "!#$&+-.^_`|~"


def save_as(response: Response, name: str) -> Response:
    """Have the browser save an answer under a name, in any script. A header holds ASCII only: RFC 6266 tells how."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    names = {"filename": plain}
    if plain != name:
        names["filename*"] = f"UTF-8''{quote(name, safe=_AS_IT_IS)}"
    response.headers.set("Content-Disposition", "attachment", **names)
    return response
