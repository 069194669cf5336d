"""`GET /docs`: a page on which a caller reads about every call and tries it. It loads only files of this service.

Swagger UI 5.34 and Scalar 1.46 were tried instead. Under the policy below Swagger UI loses its images; it is also 400
pixels too wide for a phone and has no dark theme. Scalar loses its styles, and calls a server of its vendor.
"""

from pathlib import Path

from flask import Response
from werkzeug.exceptions import NotFound

from app.api.calls import Answer, blueprint, call

_FOLDER = Path(__file__).parent / "page"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PARTS = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}

# The page holds a caller's key, so it may run and load only its own files, call only this service, and not be framed.
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@call(
    "GET /docs",
    "This description, to read and to try",
    group="Service",
    scopes=(),
    answers=Answer(about="The page.", headers=[*SECURITY], content={"text/html": {"schema": {"type": "string"}}}),
)
def show_docs() -> Response:
    """A page for a browser. It loads everything from this service."""
    return _part("index.html")


@blueprint.get("/docs/<name>")
def show_part(name: str) -> Response:
    """Answer with a style, a script or the icon of the page."""
    if name not in _PARTS:
        raise NotFound
    return _part(name)


def _part(name: str) -> Response:
    content_type = f"{_TYPES[Path(name).suffix]}; charset=utf-8"
    return Response(_PARTS[name], content_type=content_type, headers=SECURITY)
