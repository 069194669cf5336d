"""The web process, which gives up no request in time, but at once where places are short: see `hurried_web`."""

from app.web import arriving, caller_socket
from app.web.gunicorn import *  # noqa: F403  # gunicorn reads its settings from this module instead of that one.

READ_S = caller_socket.READ_S = 3_600.0
HURRIED_S = arriving.HURRIED_S = 0.2
