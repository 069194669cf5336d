"""The edges translate and render: what two of them do is one function of its noun, and none asks PostgreSQL itself."""

import ast
from pathlib import Path

import pytest

from app.api.views import CALLS

ROOT = Path(__file__).parents[2]


def test_a_call_of_the_platform_that_changes_something_says_for_whom() -> None:
    """Otherwise the log of actions would not tell whose key did it."""
    # Where something is made once, the transaction is opened for all such calls together.
    changing = [
        call
        for call in CALLS
        if call.is_of_platform and call.method != "GET" and not (call.makes_once and not call.in_steps)
    ]
    bodies = {
        node.decorator_list[0].args[0].value: "".join(map(ast.unparse, node.body))
        for path in (ROOT / "app/api/views").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and node.decorator_list
        and isinstance(node.decorator_list[0], ast.Call)
        and isinstance(node.decorator_list[0].args[0], ast.Constant)
    }
    assert changing
    assert [call.route for call in changing if "by=who.author" not in bodies[call.route]] == []


@pytest.mark.parametrize("room", ["app/api", "app/console", "app/cli", "app/web", "worker"])
def test_no_edge_has_a_statement_of_its_own(room: str) -> None:
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            assert not names & {"text", "fetch_all", "insert", "update", "select"}, path
