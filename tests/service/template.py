"""A data directory that is made once for a run of the tests and copied for each service: no `initdb`, no migration."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

POINTS = str(Path(sys.executable).with_name("points"))
_SETTINGS = ("POINTS_", "DATABASE_", "REDIS_")
# Not its ports: each service has its own.
_COPIED = ("postgresql", "secrets.json")


def copy_to(data_dir: Path) -> None:
    """Begin a data directory with a migrated database. It lies below pytest's folder, and so does the template."""
    run = next(folder for folder in data_dir.parents if re.fullmatch(r"pytest-\d+", folder.name))
    template = run / "template"
    with (run / "template.lock").open("a") as lock:  # Another process of this run may be at it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            draft = run / "template.draft"
            shutil.rmtree(draft, ignore_errors=True)
            command = [POINTS, "migrate", "--data-dir", str(draft)]
            # With the defaults, and with no server of somebody's.
            environment = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
            subprocess.run(command, env=environment, check=True, capture_output=True)
            with (draft / "postgresql" / "postgresql.conf").open("a") as settings:
                settings.write("fsync = off\n")  # No test cuts the power: what was written outlives a killed server.
            draft.rename(template)
    data_dir.mkdir(parents=True)
    # With its owners: PostgreSQL never runs as root.
    subprocess.run(["/bin/cp", "-a", *(str(template / name) for name in _COPIED), str(data_dir)], check=True)
