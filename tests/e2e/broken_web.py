"""The web process with an application that fails: `gunicorn --config python:tests.e2e.broken_web`."""

from typing import Any

from app.web.gunicorn import *  # noqa: F403  # gunicorn reads its settings from this module instead of that one.

wsgi_app = "tests.e2e.broken_web:fail"


def fail(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    if environ["PATH_INFO"] == "/header":
        start_response("200 OK", [("X-Name", f"– {environ['QUERY_STRING']}")])
        return [b"done"]
    raise ValueError(environ["QUERY_STRING"])
