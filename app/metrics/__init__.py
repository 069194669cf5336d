"""Metrics: what `GET /metrics` shows, and where each figure comes from (docs/decisions/0008, docs/observing.md).

requests     what a web process counts of its requests
work         what the workers count, read from Redis
state        how things stand: the queue in PostgreSQL, the notes of sweep and audit in Redis
page         all of it as one text

The web processes of one gunicorn count into the files of one directory: prometheus_client's multi-process mode.
That library chooses the mode when it is imported, by the environment. So the directory is made here, before any
module of this folder is imported: in gunicorn's master, whose processes inherit it.
"""

import atexit
import fcntl
import os
import shutil
import tempfile

# New for every master, so that none shows what another one has counted. One that the environment names may be that
# of a master which this one replaces.
DIRECTORY = tempfile.mkdtemp(prefix="points-metrics-")
os.environ["PROMETHEUS_MULTIPROC_DIR"] = DIRECTORY
# systemd cleans temporary folders of old files, but leaves out a directory that is locked.
fcntl.flock(os.open(DIRECTORY, os.O_RDONLY), fcntl.LOCK_SH)


def _remove(made_by: int) -> None:
    """Remove the directory at the end of the process that has made it; its children end first."""
    if os.getpid() == made_by:
        shutil.rmtree(DIRECTORY, ignore_errors=True)


atexit.register(_remove, os.getpid())
