"""The style, the script and the icon of the pages, and the redirect from `/console`."""

from pathlib import Path

from flask import Response, redirect, url_for
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as AnyResponse

from app.api.console.paths import door

_FOLDER = Path(__file__).parent.parent / "parts"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PARTS = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


@door.get("")
def front() -> AnyResponse:
    return redirect(url_for("console.overview", mode="live"))


@door.get("/parts/<name>")
def part(name: str) -> Response:
    if name not in _PARTS:
        raise NotFound
    return Response(_PARTS[name], content_type=f"{_TYPES[Path(name).suffix]}; charset=utf-8")
