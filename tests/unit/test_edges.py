"""The edges translate and render: what two of them do is one function of its noun, and none asks PostgreSQL itself."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_a_call_of_the_platform_that_changes_something_says_for_whom() -> None:
    """Otherwise the log of actions would not tell whose key did it."""
    for path in (ROOT / "app/api/views").glob("platform_*.py"):
        source = path.read_text()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                route = ast.unparse(node.decorator_list[0])
                says = "by=" in ast.unparse(node)
                assert says or "blueprint.get(" in route, f"{path.name}: {node.name}"


@pytest.mark.parametrize("room", ["app/api", "app/console", "app/cli", "app/web", "worker"])
def test_no_edge_has_a_statement_of_its_own(room: str) -> None:
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            assert not names & {"text", "fetch_all", "insert", "update", "select"}, path
