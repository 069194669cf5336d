"""Working as root in another user's folder: programs run as its owner, and new files belong to its owner."""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

from app.errors import Refused


def run_as_owner(folder: Path, program: Path) -> list[str]:
    """Return the words to put before a command, so that `program` runs as the folder's owner.

    PostgreSQL refuses to run as root, but containers and CI often run everything as root. The owner may be unable to
    reach the data or the program (a checkout below /root). Instead of opening folders to everyone, the server gets the
    one capability it needs to reach them.

    Raises:
        Refused: this process is root, another user owns the folder, and this system cannot run a program as that user.
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
        # The last bit makes access() respect the capability; PostgreSQL calls it on its own files.
        drop += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--securebits=+no_setuid_fixup"]
    return [*drop, "--"]


def give_to_owner_of(folder: Path, file: Path | int) -> None:
    """Give a file to the folder's owner; otherwise root's files would lock the owner out."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.chown(file, owner.st_uid, owner.st_gid)


def user_name(uid: int) -> str:
    """Return a user's name, or the number if this machine knows no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
