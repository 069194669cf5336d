"""The pages: every command, setting, file, test and decision they name is there."""

import re
from pathlib import Path

import click
import pytest

from app.api.openapi.description import document
from app.cli import points
from app.cli.status import down
from app.settings import Settings
from tests.unit.deployment.files import ROOT, sections

_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/RESULTS.md", "client/README.md")]
_PAGES += sorted((ROOT / "docs").rglob("*.md"))
_SOURCES = [path for folder in ("app", "worker", "migrations", "tests") for path in (ROOT / folder).rglob("*.py")]

# Of the environment, and not of the settings: of the commands, of `points send` and of programs that use the client.
_OTHERS = {"POINTS_DATA_DIR", "POINTS_KEY", "POINTS_PLATFORM_KEY", "POINTS_URL"}


def _command(words: list[str]) -> click.Command | None:
    """Return the command that a line of `points …` gives, followed as far as its groups go."""
    found: click.Command | None = points
    with click.Context(points) as context:
        for word in words:
            if not isinstance(found, click.Group):
                break
            found = found.get_command(context, word)
    return found


def _table(page: str, head: str) -> str:
    """Return the rows of the table below `head`."""
    rows = (ROOT / page).read_text().partition(f"{head}\n")[2].partition("\n\n")[0]
    return rows.partition("\n")[2]  # Without the line below the heading.


@pytest.fixture(params=_PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def _commands(page: Path) -> list[str]:
    return re.findall(r"(?:^\$ |`|&& )(?:\.venv/bin/)?points ([a-z][a-z -]*)", page.read_text(), re.MULTILINE)


def test_every_command_is_one_of_ours(page: Path) -> None:
    lines = _commands(page)
    assert [line for line in lines if _command([word for word in line.split() if word[0] != "-"]) is None] == []


def test_the_page_of_commands_names_every_command() -> None:
    table = _table("docs/commands.md", "| command | does |")
    assert re.findall(r"^\| `points ([\w-]+)`", table, re.MULTILINE) == points.list_commands(click.Context(points))


def test_every_setting_is_one_of_ours(page: Path) -> None:
    known = {f"POINTS_{name.upper()}" for name in Settings.model_fields} | _OTHERS
    assert set(re.findall(r"\bPOINTS_[A-Z_]+\b", page.read_text())) <= known


def test_the_page_of_settings_names_every_setting() -> None:
    fields = Settings.model_fields.items()
    known = {str(field.validation_alias or f"POINTS_{name.upper()}") for name, field in fields} | {"POINTS_DATA_DIR"}
    rows = _table("docs/settings.md", "| setting | default | what it limits |").splitlines()
    assert sorted(name for row in rows for name in re.findall(r"`([A-Z_]+)`", row.split("|")[1])) == sorted(known)


def test_the_page_of_calls_names_every_call() -> None:
    table = _table("docs/interface.md", "| call | answers |")
    cells = "".join(row.split("|")[1] for row in table.splitlines())
    assert sorted(re.findall(r"`([A-Z]+ /\S*)`", cells)) == sorted(
        f"{method.upper()} {path}"
        for path, methods in document(Settings.model_construct())["paths"].items()
        for method in methods
    )


def test_the_readme_is_read_in_five_minutes_and_leads_to_every_page() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 1_400
    linked = set(re.findall(r"\]\(docs/(\w[\w-]*\.md)\)", text))
    assert linked == {path.name for path in (ROOT / "docs").glob("*.md")}


def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target
    for target in re.findall(r"\]\(#([^)]+)\)", text):
        headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
        assert target in headings, target


def test_every_file_of_the_tree_is_there(page: Path) -> None:
    for path in re.findall(r"(?<![\w/.-])((?:tests|app|worker|migrations|deploy)/[\w/.-]*\w)", page.read_text()):
        assert (ROOT / path).exists(), path


def test_every_decision_that_is_named_is_there() -> None:
    known = {int(decision.name[:4]) for decision in (ROOT / "docs" / "decisions").glob("*.md")}
    for path in (*_PAGES, *_SOURCES):
        named = {int(number) for number in re.findall(r"\bdecisions?(?:/| )(\d+)", path.read_text())}
        assert named <= known, path


def test_the_map_names_every_module_and_folder_of_app_once() -> None:
    table = _table("docs/map.md", "| I want to change | look at |")
    named = re.findall(r"`app/(\w+)[\w/.]*`", table)
    paths = [path for path in (ROOT / "app").iterdir() if path.is_dir() or path.suffix == ".py"]
    assert sorted(named) == sorted(path.stem for path in paths if not path.stem.startswith("_"))
    assert {"`worker/`", "`client/`", "`migrations/versions/`"} <= set(re.findall(r"`[\w/]+`", table))
    assert len(table.splitlines()) <= 18


def test_status_leads_to_headings() -> None:
    parts = dict.fromkeys(("deliveries", "workers", "is_swept", "beat", "web", "flower"), False)
    wrong = {
        "database_error": "is away",
        "queued_batches": None,
        "partitions_ahead": 0,
        "standby": {"fault": "is away"},
    }
    sentences = [
        sentence
        for redis_error in (None, "is away")
        for sentence in down({**parts, **wrong, "redis_error": redis_error, "swept_s_ago": None})
    ]
    headings = set(re.findall(r"docs/operating\.md at “(.*?)”", " ".join(sentences)))
    assert len(headings) == 6
    assert headings | {"A snapshot is held open"} <= sections("operating.md").keys()
