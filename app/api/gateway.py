"""How gunicorn runs the application: its settings, and what is done when its processes begin and end.

Start it with `gunicorn --config python:app.api.gateway`. gunicorn's own environment variables
(`WEB_CONCURRENCY`, `GUNICORN_CMD_ARGS`) change the number of processes, the address and the rest.
"""

import gc
import os
import resource
from collections import Counter
from itertools import count
from typing import Any

from app import logs
from app.api import create_app
from app.api.connection_share import ConnectionShare, HeldConnections
from app.api.gateway_worker import GatewayLogger, GatewayWorker
from app.api.places import THREADS
from app.connections import FRONT_ANSWER_TIMEOUT_S, discard_inherited_connections, require_writable_server
from app.errors import SettingsError
from app.metrics import processes
from app.metrics.requests import watch_connections
from app.settings import settings

try:
    settings()
except SettingsError as error:
    # The master checks them too: the start ends with the sentence, not with a worker's trace.
    raise SystemExit(f"points: {error}") from None

# So many callers a process keeps a connection with.
_CONNECTIONS_MAX = 1_000
# What else it opens: connections to PostgreSQL and Redis, files, pipes.
_OTHER_FILES_MAX = 150


def _connections_max() -> int:
    """Have the system let each process open as many files as it needs, or fewer connections where it does not.

    Many systems admit 1,024 until they are asked for more. To a connection too many gunicorn's process would answer by
    ending, with all that wait in it.
    """
    admitted, at_most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS_MAX + _OTHER_FILES_MAX
    if at_most != resource.RLIM_INFINITY:
        wanted = min(wanted, at_most)
    if admitted != resource.RLIM_INFINITY and admitted < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, at_most))
    return max(1, wanted - _OTHER_FILES_MAX)


# gunicorn's settings, under the names it gives them.
wsgi_app = "app.api.gateway:application()"
worker_class = GatewayWorker
bind = "127.0.0.1:8000"
workers = int(os.environ.get("WEB_CONCURRENCY") or 2)
# Threads outnumber the requests that may wait: one that waits holds a thread and nothing else.
threads = THREADS
worker_connections = _connections_max()
# A kept connection spares the next call a handshake.
keepalive = 30
# On SIGTERM, requests that wait are let finish: nobody's answer is cut off.
graceful_timeout = int(settings().wait_s) + 5
timeout = int(settings().wait_s) + 30
accesslog = None
logger_class = GatewayLogger
control_socket_disable = True


def on_starting(server: Any) -> None:
    """Before the processes are forked, so that all of them count into one directory."""
    processes.share()


# So many new objects, not Python's 700, before the collector looks for those that nobody needs.
_COLLECT_AFTER = 20_000


# Here, so that all processes that are forked share it.
_held_connections = HeldConnections()


def pre_fork(server: Any, worker: Any) -> None:
    """In the master, who knows its other processes: their cores, and their places in what they share."""
    worker.core = _core_beside(server)
    if not server.cfg.reuse_port:  # Else each process has an address of its own, and is woken for it alone.
        worker.share = ConnectionShare(_held_connections, _place_beside(server))


def _core_beside(server: Any) -> int | None:
    """Choose the core for one more process of this server, or none: where there are more cores than processes.

    Python runs one of its threads at a time, so a second core is of no use to a process, and one that it is
    moved to has nothing of it in its caches, which is most of what a request costs (decision 14). Only where
    cores are left over shall the system choose: it knows which are busy, or slow.
    """
    if not hasattr(os, "sched_setaffinity"):  # macOS.
        return None
    cores = os.sched_getaffinity(0)
    if len(cores) > server.num_workers:
        return None
    kept_to = Counter(other.core for other in server.WORKERS.values())
    return min(sorted(cores), key=lambda core: kept_to[core])


def _place_beside(server: Any) -> int:
    """Choose the first place that no other process of this server has."""
    taken = {other.share.place for other in server.WORKERS.values()}
    return next(place for place in count() if place not in taken)


def post_fork(server: Any, worker: Any) -> None:
    discard_inherited_connections()
    require_writable_server(answer_timeout_s=FRONT_ANSWER_TIMEOUT_S)
    if worker.core is not None:
        os.sched_setaffinity(0, {worker.core})
    processes.take_slot()
    watch_connections()
    logs.output.write_together()


def worker_exit(server: Any, worker: Any) -> None:
    logs.output.flush()


def child_exit(server: Any, worker: Any) -> None:
    worker.share.take_part(False, 0)  # However it has ended, nobody shall wait for it.
    processes.forget(worker.pid)


def on_exit(server: Any) -> None:
    processes.remove()


def application() -> Any:
    app = create_app()
    # What is there now stays: the collector need not go through it again and again while callers wait. With both,
    # a process used 5 to 8 % less CPU time for a request.
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    return app
