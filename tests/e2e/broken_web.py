"""The web process with an application that fails: `gunicorn --config python:tests.e2e.broken_web`."""

from typing import Any

from app.web.gunicorn import *  # noqa: F403  # gunicorn reads its settings from this module instead of that one.

wsgi_app = "tests.e2e.broken_web:fail"


def fail(environ: dict[str, Any], _start_response: object) -> None:
    raise ValueError(environ["QUERY_STRING"])
