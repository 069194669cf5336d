"""The style, the script and the icon of the pages, and the redirect from `/console`."""

from pathlib import Path

from flask import Response, redirect, url_for
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as AnyResponse

from app.console.blueprints import door

_FOLDER = Path(__file__).parent.parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FILES = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


@door.get("")
def front() -> AnyResponse:
    return redirect(url_for("console.overview", mode="live"))


@door.get("/static/<name>")
def static_file(name: str) -> Response:
    if name not in _FILES:
        raise NotFound
    return Response(_FILES[name], content_type=f"{_TYPES[Path(name).suffix]}; charset=utf-8")
