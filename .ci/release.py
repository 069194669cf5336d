"""Make a release of this commit: `make release VERSION=1.0.0`, or with `CHECKED=1` where CI has checked the commit.

It refuses with a sentence before it changes anything. Version, date, builds and the files of `dist` are made in a work
tree beside this one; only when all of them are whole do the branch and the tag move there.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_PYTHON = str(_ROOT / ".venv/bin/python") if (_ROOT / ".venv").exists() else sys.executable
_GIT, _MAKE = shutil.which("git") or "git", shutil.which("make") or "make"
_VERSION_FILE = "client/src/points_client/version.py"
_UNRELEASED = "## Unreleased\n"
_INSTALL = "requirements.txt"


def main(version: str, *, is_checked: bool) -> None:
    """Release this commit under a version."""
    _require(re.fullmatch(r"\d+\.\d+\.\d+", version), f"VERSION must be three numbers, such as 1.0.0, not {version!r}.")
    changes = _git("status", "--porcelain")
    _require(not changes, f"The tree is not clean; commit first:\n{changes}")
    tag = f"v{version}"
    _require(not _git("tag", "--list", tag), f"The tag {tag} exists: a version is released once.")
    text = (_ROOT / "CHANGELOG.md").read_text()
    _require(text.count(_UNRELEASED) == 1, f"CHANGELOG.md needs one heading {_UNRELEASED.strip()!r} with what changed.")
    dist = _ROOT / "dist" / version
    _require(not dist.exists(), f"{dist} exists; remove it first.")
    if not is_checked:
        _require(
            subprocess.run([_MAKE, "check"], cwd=_ROOT, check=False).returncode == 0,
            "make check failed: nothing is released.",
        )
    with tempfile.TemporaryDirectory() as folder:
        tree, made = Path(folder, "tree"), Path(folder, "made")
        _git("worktree", "add", "--quiet", "--detach", str(tree))
        try:
            commit = _commit(tree, version, text)
            _build(tree, made)
        finally:
            _git("worktree", "remove", "--force", str(tree))
        _git("merge", "--quiet", "--ff-only", commit)
        _git("tag", "--annotate", "--message", f"Release {version}", tag)
        shutil.copytree(made, dist)
    print(f"Released {version} as {commit[:8]}, tagged {tag}. Its files are in {dist.relative_to(_ROOT)}.")
    print("To publish it: git push --follow-tags, and hand out the files. In their folder:")
    print(f"pip install --require-hashes --requirement {_INSTALL}")


def _commit(tree: Path, version: str, text: str) -> str:
    """Write version and date into a work tree, and return the commit that says so."""
    (tree / "CHANGELOG.md").write_text(text.replace(_UNRELEASED, f"## {version} – {datetime.now(UTC):%Y-%m-%d}\n"))
    file = tree / _VERSION_FILE
    file.write_text(re.sub(r'(?<=__version__ = ")[^"]*', version, file.read_text()))
    _git("commit", "--quiet", "--all", "--message", f"Release {version}", tree=tree)
    return _git("rev-parse", "HEAD", tree=tree)


def _build(tree: Path, made: Path) -> None:
    """Build both packages twice, the second time each wheel from the tree, and write what is handed out with them."""
    epoch = _git("show", "--no-patch", "--format=%ct", tree=tree)
    again = made.with_name("again")
    for folder, options in ((made, ()), (again, ("--sdist", "--wheel"))):
        for package in (tree, tree / "client"):
            command = ["-m", "build", "--no-isolation", *options, "--outdir", str(folder), str(package)]
            done = subprocess.run(
                [_PYTHON, *command],
                env=os.environ | {"SOURCE_DATE_EPOCH": epoch},
                capture_output=True,
                text=True,
                check=False,
            )
            _require(done.returncode == 0, f"A package was not built:\n{done.stdout}{done.stderr}")
    _require(_hashes(made) == _hashes(again), f"Two builds differ: {_hashes(made)} and {_hashes(again)}.")
    lock = (tree / "requirements.lock").read_text()
    wheel = next(name for name in _hashes(made) if name.startswith("points_issuing") and name.endswith(".whl"))
    (made / _INSTALL).write_text(f"{lock}./{wheel} --hash=sha256:{_hashes(made)[wheel]}\n")
    shutil.copy(tree / "Procfile", made)
    _write_bill(tree, made / "sbom.cdx.json")
    (made / "SHA256SUMS").write_text("".join(f"{sum_}  {name}\n" for name, sum_ in _hashes(made).items()))


def _write_bill(tree: Path, file: Path) -> None:
    """Write the SBOM in CycloneDX: every package of the lock, with its hashes."""
    command = ["-m", "cyclonedx_py", "requirements", "--output-reproducible", "--of", "JSON", "-o", str(file)]
    done = subprocess.run(
        [_PYTHON, *command, str(tree / "requirements.lock")], capture_output=True, text=True, check=False
    )
    _require(done.returncode == 0, f"The SBOM was not made:\n{done.stderr}")


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.iterdir() if not file.name.startswith("."))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _git(*arguments: str, tree: Path = _ROOT) -> str:
    done = subprocess.run([_GIT, "-C", str(tree), *arguments], capture_output=True, text=True, check=False)
    _require(done.returncode == 0, f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _require(holds: object, sentence: str) -> None:
    if not holds:
        sys.exit(f"Not released. {sentence}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "", is_checked="--checked" in sys.argv)
