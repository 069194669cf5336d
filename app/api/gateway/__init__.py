"""How gunicorn runs the application: its settings, and what is done when its processes begin and end.

Start it with `gunicorn --config python:app.api.gateway`. gunicorn's own environment variables
(`WEB_CONCURRENCY`, `GUNICORN_CMD_ARGS`) change the number of processes, the address and the rest.
"""

import gc
import os
from collections import Counter
from typing import Any

from gunicorn.http.errors import ParseException

from app.api import create_app, envelope
from app.api.gateway.worker import GatewayLogger, GatewayWorker, require_clear_names
from app.api.sending.wait_slots import THREADS
from app.connections import FRONT_ANSWER_TIMEOUT_S, discard_inherited_connections, require_writable_server
from app.errors import SettingsError
from app.metrics.requests import forget_connections_of, watch_connections
from app.settings import settings

try:
    settings()
except SettingsError as error:
    # The master checks them too: the start ends with the sentence, not with a worker's trace.
    raise SystemExit(f"points: {error}") from None

# gunicorn's settings, under the names it gives them.
wsgi_app = "app.api.gateway:application()"
worker_class = GatewayWorker
bind = "127.0.0.1:8000"
workers = int(os.environ.get("WEB_CONCURRENCY") or 2)
# Threads outnumber the requests that may wait: one that waits holds a thread and nothing else.
threads = THREADS
# With its other files, fewer than the 1,024 that most systems admit a process.
worker_connections = 800
# A kept connection spares the next call a handshake. A proxy must be the first to let go of it: one that sends a call
# just as we close has no answer, and says 502. nginx and most balancers keep theirs for 60 to 75 s.
keepalive = settings().keep_alive_s
# What proxies say of the caller's own connection is not used, so none of it can contradict the rest.
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
# A name with an underscore is none of ours. It is let through as far as `pre_request`, which says so where it matters.
header_map = "dangerous"
# On SIGTERM, requests that wait are let finish: nobody's answer is cut off.
graceful_timeout = int(settings().wait_s) + 5
timeout = int(settings().wait_s) + 30
accesslog = None
logger_class = GatewayLogger
control_socket_disable = True


def pre_fork(server: Any, worker: Any) -> None:
    """Choose the core that one more process keeps to, or none where there are more cores than processes.

    Python runs one of its threads at a time, so a second core is of no use to a process, and one that it is moved to
    has nothing of it in its caches, which is most of what a request costs (decision 14). Only where cores are left over
    shall the system choose: it knows which are busy, or slow.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []  # macOS has none.
    # gunicorn tells nobody but its arbiter which processes there are.
    kept_to = Counter(other.core for other in server.WORKERS.values())
    worker.core = min(cores, key=lambda core: kept_to[core]) if 0 < len(cores) <= server.num_workers else None


def post_fork(server: Any, worker: Any) -> None:
    discard_inherited_connections()
    require_writable_server(answer_timeout_s=FRONT_ANSWER_TIMEOUT_S)
    if worker.core is not None:
        os.sched_setaffinity(0, {worker.core})
    watch_connections()


def pre_request(worker: Any, request: Any) -> None:
    require_clear_names(request)


def child_exit(server: Any, worker: Any) -> None:
    forget_connections_of(worker.pid)


def application() -> Any:
    app = create_app()
    # A body that is not framed as HTTP says: gunicorn finds that out when the application reads it.
    broken_body = {"request": ["The chunks of the body are not well-formed."]}
    app.register_error_handler(ParseException, lambda _: envelope.failure(400, broken_body))
    # What is there now stays: the collector need not go through it again and again while callers wait, and looks at
    # what is new after 20,000 objects, not Python's 700. A process used 5 to 8 % less CPU time for a request.
    gc.freeze()
    gc.set_threshold(20_000)
    return app
