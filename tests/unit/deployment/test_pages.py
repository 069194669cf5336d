"""The pages for operators: every command, setting, file and test they name is there."""

import re
from pathlib import Path

import click
import pytest

from app.cli import points
from app.settings import Settings
from tests.unit.deployment.files import ROOT

_PAGES = [ROOT / "docs" / name for name in ("operating.md", "backup.md", "migrations.md")]

# Of the environment, and not of the settings.
_OTHERS = {"POINTS_DATA_DIR"}


def _command(words: list[str]) -> click.Command | None:
    """Return the command that a line of `points …` gives, followed as far as its groups go."""
    found: click.Command | None = points
    with click.Context(points) as context:
        for word in words:
            if not isinstance(found, click.Group):
                break
            found = found.get_command(context, word)
    return found


@pytest.fixture(params=_PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> str:
    path: Path = request.param
    return path.read_text()


def test_every_command_is_one_of_ours(page: str) -> None:
    lines = re.findall(r"(?:^\$ |`|&& )points ([a-z][a-z -]*)", page, re.MULTILINE)
    unknown = [line for line in lines if _command([word for word in line.split() if word[0] != "-"]) is None]
    assert lines
    assert unknown == []


def test_every_setting_is_one_of_ours(page: str) -> None:
    known = {f"POINTS_{name.upper()}" for name in Settings.model_fields} | _OTHERS
    assert set(re.findall(r"\bPOINTS_[A-Z_]+\b", page)) <= known


def test_every_link_leads_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (ROOT / "docs" / target).exists(), target
    for target in re.findall(r"\]\(#([^)]+)\)", page):
        headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
        assert target in headings, target


def test_every_file_of_the_tree_is_there(page: str) -> None:
    for path in re.findall(r"`((?:tests|app|migrations|deploy)/[\w/.-]+)`", page):
        assert (ROOT / path).exists(), path


def test_every_alert_leads_to_a_symptom() -> None:
    alerts = re.findall(r"- alert: (\w+)", (ROOT / "docs" / "monitoring" / "alerts.yml").read_text())
    symptoms = (ROOT / "docs" / "operating.md").read_text()
    assert alerts
    assert [alert for alert in alerts if f"`{alert}`" not in symptoms] == []
