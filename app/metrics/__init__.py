"""Metrics: what `GET /metrics` shows, and where each figure comes from (docs/decisions/0008, docs/observing.md).

requests     the record of a request, and what each web process counts
page         all as one text, with what is read for it: the workers' counts, and the state of queues and servers

The web processes of one gunicorn count into files of one directory (prometheus_client's multi-process mode). The
library reads the directory's name from the environment when it is imported. So gunicorn's master makes the directory
here, before it imports any module of this folder, and its processes inherit it.
"""

import atexit
import fcntl
import os
import shutil
import tempfile

# New for every master, so that none shows another's counts. A directory from the environment might belong to the master
# that this master replaces.
DIRECTORY = tempfile.mkdtemp(prefix="points-metrics-")
os.environ["PROMETHEUS_MULTIPROC_DIR"] = DIRECTORY
# systemd removes old temporary files, but not in a locked directory.
fcntl.flock(os.open(DIRECTORY, os.O_RDONLY), fcntl.LOCK_SH)


def _remove(made_by: int) -> None:
    """Remove the directory when the process that made it ends; its children end first."""
    if os.getpid() == made_by:
        shutil.rmtree(DIRECTORY, ignore_errors=True)


atexit.register(_remove, os.getpid())
