"""The web process, less patient with slow callers: `gunicorn --config python:tests.e2e.hurried_web`."""

from app.web import caller_socket
from app.web.gunicorn import *  # noqa: F403  # gunicorn reads its settings from this module instead of that one.

READ_S = caller_socket.READ_S = 2.5
STALLED_S = caller_socket._STALLED_S = 4.0
# A busy system's buffers take a little more of an answer now and then, which is slow reading and no standstill.
caller_socket._SLOWEST_BYTES_PER_S = 200_000
