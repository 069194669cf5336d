"""The image: pinned, small, not root, and with the command of `web`."""

import re

from tests.unit.deployment.files import ROOT, image_command, instructions, procfile, pyproject


def test_the_image_runs_web_as_the_procfile_does() -> None:
    assert image_command() == ["sh", "-c", procfile()["web"]]


def test_the_image_does_not_run_as_root() -> None:
    last_stage = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.*)$", last_stage, re.MULTILINE) == ["10001:10001"]


def test_both_stages_are_the_slim_python_that_the_locks_are_made_for() -> None:
    version = pyproject()["project"]["requires-python"].removeprefix(">=")
    assert [base.split()[0] for base in instructions("FROM")] == [f"python:{version}-slim-trixie"] * 2
    assert f"--python-version {version} " in (ROOT / "Makefile").read_text()


def test_what_the_image_installs_is_pinned_by_hashes_and_the_project_adds_nothing() -> None:
    installs = re.findall(r"pip install ([^&]*)", " && ".join(instructions("RUN")))
    assert [install.strip() for install in installs] == [
        "--require-hashes --requirement requirements.lock",
        "--no-deps --no-build-isolation ./client .",
    ]


def test_the_image_has_no_embedded_servers() -> None:
    embedded = pyproject()["project"]["optional-dependencies"]["embedded"]
    removed = " ".join(re.findall(r"pip uninstall --yes ([^&]*)", " && ".join(instructions("RUN")))).split()
    assert set(embedded) <= set(removed)


def test_the_image_is_built_from_every_package_and_the_builder_is_sent_nothing_else() -> None:
    sources = {source for copied in instructions("COPY") if "--from" not in copied for source in copied.split()[:-1]}
    packages = {name.rstrip("*") for name in pyproject()["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert sources == packages | {"requirements.lock", "pyproject.toml", "README.md", "client"}
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == sources
