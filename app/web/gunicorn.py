"""gunicorn's settings for the application, and its hooks at the start and end of a process.

Start it with `gunicorn --config python:app.web.gunicorn`. gunicorn's own environment variables
(`WEB_CONCURRENCY`, `GUNICORN_CMD_ARGS`) change the number of processes, the address and other settings.
"""

import gc
import os
from collections import Counter
from typing import Any

from gunicorn.http.errors import ParseException

from app.api import envelope
from app.api.sending.wait_slots import THREADS
from app.errors import SettingsError
from app.metrics.requests import forget_connections_of, watch_connections
from app.postgres.connections import FRONT_ANSWER_TIMEOUT_S, discard_inherited_connections, require_writable_server
from app.settings import settings
from app.web.application import create_app
from app.web.gunicorn_worker import GatewayLogger, GatewayWorker, require_clear_head
from app.web.recording import request_log
from migrations import end_if_unfit

try:
    settings()
except SettingsError as error:
    # Checked in the master, so that a wrong setting ends the start with a sentence, not with a worker's traceback.
    raise SystemExit(f"points: {error}") from None

# gunicorn reads the names below.
wsgi_app = "app.web.gunicorn:application()"
preload_app = True  # In the master, so that the processes share its memory.
worker_class = GatewayWorker
bind = "127.0.0.1:8000"
workers = int(os.environ.get("WEB_CONCURRENCY") or 2)
threads = THREADS
# Together with other open files this stays below 1,024, the usual limit for a process.
worker_connections = 800
# A kept connection saves the next call a handshake. A proxy must close it first: if the proxy sends a call just as we
# close, it gets no answer and says 502. nginx and most balancers keep theirs for 60 to 75 s.
keepalive = settings().keep_alive_s
# Headers in which proxies describe the caller's connection are ignored, so they cannot contradict the request.
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
# Header names with an underscore reach `pre_request`, which refuses or removes them.
header_map = "dangerous"
# After SIGTERM, waiting requests get time to finish.
graceful_timeout = int(settings().wait_s) + 5
timeout = int(settings().wait_s) + 30
accesslog = None
logger_class = GatewayLogger
control_socket_disable = True


def on_starting(server: Any) -> None:
    end_if_unfit()


def pre_fork(server: Any, worker: Any) -> None:
    """Choose the core that a new process is pinned to, or none if there are more cores than processes.

    Python runs one thread at a time, so a process cannot use a second core. A move to another core empties its caches,
    which is most of what a request costs (decision 14). With cores to spare, the system chooses better than we can.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []  # macOS lacks it.
    processes_on = Counter(other.core for other in server.WORKERS.values())
    worker.core = min(cores, key=lambda core: processes_on[core]) if 0 < len(cores) <= server.num_workers else None


def post_fork(server: Any, worker: Any) -> None:
    discard_inherited_connections()
    require_writable_server(answer_timeout_s=FRONT_ANSWER_TIMEOUT_S)
    if worker.core is not None:
        os.sched_setaffinity(0, {worker.core})
    watch_connections()
    request_log.start()


def worker_exit(server: Any, worker: Any) -> None:
    request_log.stop()


def pre_request(worker: Any, request: Any) -> None:
    require_clear_head(request)


def child_exit(server: Any, worker: Any) -> None:
    forget_connections_of(worker.pid)


def application() -> Any:
    app = create_app()
    # gunicorn finds malformed chunks only when the application reads the body.
    broken_body = {"request": ["The chunks of the body are not well-formed."]}
    app.register_error_handler(ParseException, lambda _: envelope.failure(400, broken_body))
    # The garbage collector skips the objects made so far, which stay alive. It runs after 20,000 new objects instead of
    # Python's 700. Measured: 5 to 8 % less CPU time for a request.
    gc.freeze()
    gc.set_threshold(20_000)
    return app
