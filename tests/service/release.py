"""A release of this tree for a test: the files that `make release` makes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.unit.deployment.files import ROOT

VERSION = "7.8.9"
_COPIED = ["app", "worker", "migrations", "client", "deploy", "docs", ".ci", "requirements.lock", "pyproject.toml"]
_COPIED += ["README.md", "CHANGELOG.md", "SECURITY.md", "Procfile", ".gitignore"]


def ran(*words: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    return subprocess.run(list(map(str, words)), cwd=cwd, env=alone, capture_output=True, text=True, check=False)


def succeeds(*words: str | Path, cwd: Path, **environment: str) -> str:
    done = ran(*words, cwd=cwd, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy(tree: Path, *more: str) -> None:
    tree.mkdir()
    for name in [*_COPIED, *more]:
        whole = (ROOT / name).is_dir()
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, tree / name, ignore=ignored) if whole else shutil.copy(ROOT / name, tree)


def repository(tree: Path) -> Path:
    """Make a repository of what stands here, with a section that waits for its release."""
    copy(tree)
    text = (tree / "CHANGELOG.md").read_text().replace("## Unreleased\n", "## Earlier\n")
    (tree / "CHANGELOG.md").write_text(f"{text}\n## Unreleased\n\nA thing.\n")
    for words in (["init", "--quiet"], ["config", "user.name", "T"], ["config", "user.email", "t@example.com"]):
        succeeds("git", *words, cwd=tree)
    succeeds("git", "add", "--all", cwd=tree)
    succeeds("git", "commit", "--quiet", "--message", "All", cwd=tree)
    return tree


def release(tree: Path, version: str = VERSION) -> subprocess.CompletedProcess[str]:
    return ran(sys.executable, ".ci/release.py", version, "--checked", cwd=tree)
