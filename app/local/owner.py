"""Whose a folder is: what root starts runs as the folder's owner, and what root writes is theirs."""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

from app.errors import Refused


def run_as_owner(folder: Path, program: Path) -> list[str]:
    """Return what to put before a command with this program so that it runs as the folder's owner.

    PostgreSQL refuses to run as root, and root is what a container or a CI machine often is. The
    owner may then have no way to the data or to the program (a checkout below /root); instead of
    opening folders that are not ours, the server gets the one capability it lacks: to pass them.

    Raises:
        Refused: we are root, the folder is another's, and this system cannot run it as them.
    """
    owner = folder.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return []
    if shutil.which("setpriv") is None or sys.platform != "linux":
        raise Refused(
            f"{folder} belongs to the user {user_name(owner.st_uid)}, and this system has no setpriv to run its server"
            " as them. Start as an ordinary user, or set DATABASE_URL and REDIS_URL."
        )
    drop = ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"]
    reachable = subprocess.run([*drop, "test", "-x", program, "-a", "-w", folder], check=False)
    if reachable.returncode != 0:
        # The last bit lets access() count that capability too; PostgreSQL asks it about its own files.
        drop += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--securebits=+no_setuid_fixup"]
    return [*drop, "--"]


def give_to_owner_of(folder: Path, file: Path | int) -> None:
    """Give a file to whom the folder belongs: root may work in another's, and must not lock them out."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.chown(file, owner.st_uid, owner.st_gid)


def user_name(uid: int) -> str:
    """Return a user's name, or its number when it has none on this machine."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
