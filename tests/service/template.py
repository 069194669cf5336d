"""A data directory that is made once for a run of the tests and copied for each service: no `initdb`, no migration."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.service.run import alone, of_the_run

POINTS = str(Path(sys.executable).with_name("points"))
_SETTINGS = ("POINTS_", "DATABASE_", "REDIS_")
# Not its ports: each service has its own.
_COPIED = ("postgresql", "secrets.json")


def copy_to(data_dir: Path) -> None:
    """Begin a data directory with a migrated database. It lies below pytest's folder, and so does the template."""
    template = of_the_run(data_dir, "template")
    with alone(template.parent, "template"):  # Another process of this run may be at it.
        if not template.exists():
            draft = template.with_name("template.draft")
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
