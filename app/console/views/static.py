"""The style, the script and the icon of the pages, and the redirect from `/console`."""

import hashlib
from pathlib import Path
from typing import Any

from flask import Response, redirect, request, url_for
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as AnyResponse

from app.console.blueprints import door

_FOLDER = Path(__file__).parent.parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FILES = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
_VERSIONS = {name: hashlib.sha256(content).hexdigest()[:12] for name, content in _FILES.items()}
_FOR_EVER = "public, max-age=31536000, immutable"


@door.url_defaults
def _name_version(endpoint: str, values: dict[str, Any]) -> None:
    if endpoint == "console_door.static_file":
        values.setdefault("v", _VERSIONS[values["name"]])


@door.get("")
def front() -> AnyResponse:
    return redirect(url_for("console.overview", mode="live"))


@door.get("/static/<name>")
def static_file(name: str) -> Response:
    if name not in _FILES:
        raise NotFound
    answer = Response(_FILES[name], content_type=f"{_TYPES[Path(name).suffix]}; charset=utf-8")
    if request.args.get("v") == _VERSIONS[name]:  # Of another version nothing is kept: during an update both are asked.
        answer.headers["Cache-Control"] = _FOR_EVER
    return answer
