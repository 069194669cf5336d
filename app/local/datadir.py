"""The data directory: the embedded servers' data, their passwords, a note of what runs now; and whose it all is."""

import base64
import errno
import fcntl
import json
import os
import pwd
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

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


DEFAULT = ".points"
# Where `points up` notes what it runs.
RUNNING_FILE = "running.json"
_SECRETS_KEY = "webhook secrets"


class DataDir:
    """The data directory. The service writes nowhere else; only the owner can read files that hold a secret.

    Raises:
        Refused: a link in the path leads back to itself.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.path = Path(path).resolve()
        except (OSError, RuntimeError):
            raise Refused(f"The data directory {path} cannot be found: a link in it leads back to itself.") from None

    def create(self) -> None:
        """Make the folder, or check that this user may write to it.

        Raises:
            Refused: the folder belongs to another user, or cannot be made or written to.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"The data directory {self.path} cannot be made: {error.strerror}.") from None
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            uid = self.path.stat().st_uid
            if uid == os.geteuid():
                raise Refused(
                    f"The data directory {self.path} cannot be written to: its permissions, or its disk, forbid it."
                )
            owner = user_name(uid)
            raise Refused(
                f"The data directory {self.path} belongs to the user {owner}. Run as {owner},"
                " or choose another with --data-dir."
            )

    def exists(self) -> bool:
        return os.path.isdir(self.path)  # A folder that this user may not look into is none of ours.

    def read(self, name: str) -> dict[str, Any]:
        """Return a JSON file of this folder, or {} when there is none yet.

        Raises:
            Refused: the file belongs to another user, or is damaged.
        """
        try:
            document: dict[str, Any] = json.loads((self.path / name).read_text())
        except FileNotFoundError:
            return {}
        except PermissionError:
            owner = user_name((self.path / name).stat().st_uid)
            raise Refused(f"{self.path / name} belongs to the user {owner}. Run as {owner}.") from None
        except ValueError:
            # The next start writes a new running file. A lost password cannot be made again.
            remedy = "delete it" if name == RUNNING_FILE else "restore it from a backup"
            raise Refused(f"{self.path / name} is damaged, it is not valid JSON: {remedy}.") from None
        return document

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Replace a JSON file atomically: a reader sees the old file or the new file."""
        target = self.path / name
        draft = target.with_suffix(f".{os.getpid()}")
        draft.touch(mode=0o600)
        with draft.open("w") as file:
            file.write(json.dumps(document, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())  # Otherwise a power failure could leave an empty file, without the password.
        give_to_owner_of(self.path, draft)
        draft.replace(target)

    def update(self, name: str, **changes: object) -> None:
        """Change some keys of a JSON file; None removes a key."""
        document = self.read(name) | changes
        self.write(name, {key: value for key, value in document.items() if value is not None})

    def password(self, name: str) -> str:
        """Return the password with this name; make it on the first call."""
        passwords = self.read("secrets.json")
        if name not in passwords:
            passwords[name] = secrets.token_urlsafe(24)
            self.write("secrets.json", passwords)
        return str(passwords[name])

    def secrets_key(self, *, make: bool) -> str | None:
        """Return the key that encrypts secrets; if there is none that may be read, make it (`make`) or return None."""
        if not make and not os.access(self.path / "secrets.json", os.R_OK):
            return None
        passwords = self.read("secrets.json")
        if _SECRETS_KEY not in passwords and make:
            passwords[_SECRETS_KEY] = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
            self.write("secrets.json", passwords)
        return passwords.get(_SECRETS_KEY)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold a lock file exclusively; wait until it is free. The kernel frees it if this process dies."""
        with self._open_lock(name) as file:
            self._lock(file, fcntl.LOCK_EX)
            yield

    def _open_lock(self, name: str) -> IO[str]:
        file = (self.path / name).open("a")
        give_to_owner_of(self.path, file.fileno())
        return file

    def try_lock(self, name: str, *, shared: bool = False) -> IO[str] | None:
        """Return the open, locked file, or None if another process has the lock. Closing the file frees the lock."""
        file = self._open_lock(name)
        try:
            self._lock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    def _lock(self, file: IO[str], how: int) -> None:
        try:
            fcntl.flock(file, how)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise
            file.close()
            raise Refused(
                f"The data directory {self.path} cannot be locked, as on some network folders ({error.strerror})."
                " Name a local one with --data-dir."
            ) from None
