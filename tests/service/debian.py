"""A host of Debian for a test: this machine's own files below an overlay, with a systemd and a network of its own."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deadline import TIMEOUT_S, until

# What docs/installing.md installs, and what boots a host.
_PACKAGES = (
    "postgresql",
    "redis-server",
    "nginx",
    "python3-venv",
    "openssl",
    "curl",
    "systemd-container",
    "systemd-sysv",
    "prometheus",
    "prometheus-alertmanager",
    "prometheus-node-exporter",
    "prometheus-blackbox-exporter",
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_END = "end-of-command"


def lacks() -> str | None:
    """Tell why no such host can be made here, if none can."""
    if os.geteuid() != 0:
        return "only root may boot a host of its own"
    query = shutil.which("dpkg-query")
    if query is None:
        return "this is no Debian"
    known = subprocess.run(
        [query, "--show", "--showformat=${Package} ${Status}\n", *_PACKAGES],
        capture_output=True,
        text=True,
        check=False,
    )
    missing = [name for name in _PACKAGES if f"{name} install ok installed" not in known.stdout.splitlines()]
    return f"not installed: {', '.join(missing)}" if missing else None


class Host:
    """A booted host, and one shell of root in it, which keeps its variables and its folder."""

    def __init__(self, root: Path, leader: int) -> None:
        self.root, self._leader = root, leader
        self._shell = subprocess.Popen(
            [*self.inside(), "bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": _PATH, "HOME": "/root", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
            text=True,
        )

    def inside(self) -> list[str]:
        """Return the words before a command that is to run in the host."""
        return ["nsenter", f"--target={self._leader}", "--all", "--root", "--wd"]

    def in_its_network(self) -> list[str]:
        """Return the words before a command of this machine that is to call the host."""
        return ["nsenter", f"--target={self._leader}", "--net"]

    def do(self, command: str) -> str:
        """Give a command to the shell; return what it printed.

        Raises:
            AssertionError: its exit status is not 0.
        """
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        # No command may read the commands that follow it.
        self._shell.stdin.write(f"{{\n{command}\n}} < /dev/null\necho {_END} $?\n")
        self._shell.stdin.flush()
        printed = ""
        for line in self._shell.stdout:
            said, end, status = line.rpartition(_END)
            printed += said if end else line
            if end:
                assert int(status) == 0, f"{command}\n{printed}"
                return printed
        raise AssertionError(f"the shell ended at: {command}\n{printed}")

    def close(self) -> None:
        self._shell.kill()
        self._shell.communicate()


@contextmanager
def host(folder: Path, started: tuple[str, ...]) -> Iterator[Host]:
    """Boot a host; `started` are the services that Debian starts when it installs them."""
    root = _overlay(folder)
    try:
        (root / "etc" / "machine-id").write_text("")
        # Its packages are those of this machine, and it has no network to fetch others.
        (root / "etc" / "apt" / "apt.conf.d" / "as-it-is").write_text('APT::Get::Upgrade "false";\n')
        command = [
            "systemd-nspawn",
            "--quiet",
            f"--directory={root}",
            "--private-network",
            "--register=no",
            "--keep-unit",
        ]
        # What else this machine has installed is not started.
        with (folder / "console.log").open("wb") as log:
            machine = subprocess.Popen(
                [*command, "--boot", "--console=pipe", "systemd.unit=basic.target"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            leader = _leader(machine)
            booted = Host(root, leader)
            try:
                until(lambda: _is_up(booted), "a booted systemd", every_s=0.2)
                booted.do(f"ip link set lo up; systemctl start {' '.join(started)}")
                yield booted
            finally:
                booted.close()
        finally:
            machine.terminate()
            machine.wait(TIMEOUT_S)
    finally:
        _give("umount", "--recursive", str(folder / "disk"))


def _overlay(folder: Path) -> Path:
    disk = folder / "disk"
    disk.mkdir()
    _give("mount", "-t", "tmpfs", "tmpfs", str(disk))
    root, changes, work = (disk / name for name in ("root", "changes", "work"))
    for made in (root, changes, work):
        made.mkdir()
    layers = f"lowerdir=/,upperdir={changes},workdir={work}"
    _give("mount", "-t", "overlay", "overlay", "-o", layers, str(root))
    return root


def _give(program: str, *words: str) -> None:
    subprocess.run([str(shutil.which(program)), *words], check=True)


def _leader(machine: "subprocess.Popen[bytes]") -> int:
    """Return the process id of the host's systemd: the only child of systemd-nspawn, once it has become that."""
    children = Path(f"/proc/{machine.pid}/task/{machine.pid}/children")

    def systemds() -> list[int]:
        assert machine.poll() is None, "systemd-nspawn ended"
        found = [int(pid) for pid in children.read_text().split()]
        return [pid for pid in found if Path(f"/proc/{pid}/comm").read_text() == "systemd\n"]

    until(systemds, "the systemd of the host")
    return systemds()[0]


def _is_up(booted: Host) -> bool:
    return "yes" in booted.do("systemctl is-active --quiet basic.target && echo yes || true")
