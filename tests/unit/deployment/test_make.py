"""What `make` does: the check that proves the tree says what it leaves unproved."""

import os
import re
import subprocess

from tests.unit.deployment.files import ROOT, SHELL


def test_a_port_that_is_given_to_make_run_is_that_of_the_service() -> None:
    def last_line(*variables: str) -> list[str]:
        environment = {name: value for name, value in os.environ.items() if name not in ("PORT", "FLOWER_PORT")}
        command = ["make", "--no-print-directory", "--dry-run", "run", *variables]
        said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
        return said.splitlines()[-1].split()[1:]

    assert last_line() == ["up"]
    assert last_line("PORT=8123", "FLOWER_PORT=5999") == ["up", "--port", "8123", "--flower-port", "5999"]


def test_the_check_ends_with_where_it_ran_and_what_it_has_not_tested() -> None:
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    last = recipe[1].splitlines()[-1].strip()
    assert last.startswith("@echo ")
    said = subprocess.run(
        [SHELL, "-c", last.removeprefix("@").replace("$$", "$")], capture_output=True, text=True, check=True
    ).stdout
    where = " ".join((os.uname().sysname, os.uname().machine))
    assert said.startswith(f"Tested on {where}. Untested: ")
    assert all(word in said for word in ("macOS", "arm", "containers"))
