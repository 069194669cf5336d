"""The edges translate and render: what two of them do is one function of its noun, and none asks PostgreSQL itself."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]

# Each action with the modules of the edges that offer it.
ACTIONS = {
    "app.batches.accept:accept": ("app.api.sending.accepting", "app.console.sending"),
    "app.batches.schedule:cancel": ("app.api.views.batch_actions", "app.console.views.batch_actions"),
    "app.batches.schedule:reschedule": ("app.api.views.batch_actions", "app.console.views.batch_actions"),
    "app.messaging.drains:drains": ("app.api.sending.send_path", "app.console.views.send_cost"),
    "app.ledger.extend:extend": ("app.api.views.transactions", "app.console.views.hold_longer"),
    "app.reversals.accept:accept": ("app.api.views.reverse", "app.console.views.take_back"),
    "app.reversals.preview:recoverable": ("app.api.views.reverse", "app.console.views.take_back"),
    "app.webhooks.request:read_webhook": ("app.api.views.webhooks", "app.console.views.webhooks"),
    "app.webhooks.actions:make": ("app.api.views.webhooks", "app.console.views.webhooks"),
    "app.webhooks.actions:act": ("app.api.views.webhooks", "app.console.views.webhook_actions"),
    "app.webhooks.actions:ping": ("app.api.views.webhooks", "app.console.views.webhook_actions"),
    "app.webhooks.actions:disable": ("app.api.views.webhooks", "app.console.views.webhook_actions"),
    "app.webhooks.actions:enable": ("app.api.views.webhooks", "app.console.views.webhook_actions"),
    "app.webhooks.actions:skip": ("app.api.views.webhooks", "app.console.views.webhook_actions"),
    "app.webhooks.actions:replay": ("app.api.views.webhooks", "app.console.views.webhook_actions"),
    "app.webhooks.actions:rotate": ("app.api.views.webhooks", "app.console.views.webhook_actions"),
    "app.webhooks.actions:delete": ("app.api.views.webhooks", "app.console.views.webhook_actions"),
    "app.pages.batch_pages:page": ("app.api.views.batches", "app.console.views.batches"),
    "app.pages.transaction_pages:page": ("app.api.views.transactions", "app.console.views.transactions"),
    "app.exports.export:begin": ("app.cli.export", "app.console.found_files"),
    "app.pages.action_pages:page": (
        "app.api.views.platform_actions",
        "app.cli.actions",
        "app.console.views.activity",
    ),
    "app.pages.request_pages:page": ("app.api.views.requests", "app.console.views.requests"),
    "app.statement.read:statement_of": ("app.api.views.statement", "app.console.views.statement", "app.cli.statement"),
    **{
        f"app.api_keys:{action}": ("app.cli.keys", "app.console.views.keys", "app.api.views.platform_organizations")
        for action in ("create", "revoke")
    },
    "app.ledger.refill:open_organization": ("app.cli.organizations", "app.api.views.platform_organizations"),
    "app.ledger.refill:refill_once": ("app.cli.organizations", "app.api.views.platform_organizations"),
    "app.organizations:change": ("app.cli.organizations", "app.api.views.platform_organizations"),
    "app.ledger.registering:register_user": ("app.cli.users", "app.api.views.platform_users"),
    "app.erasing.erase:erase_user": ("app.cli.users", "app.api.views.platform_users"),
    "app.members.links:add": ("app.cli.members", "app.console.views.members", "app.api.views.platform_organizations"),
    "app.members.members:remove": ("app.cli.members", "app.console.views.members"),
    "app.members.links:make_link": ("app.cli.members", "app.console.views.members"),
}


def _used_by(name: str) -> Iterator[object]:
    """Yield each object that a module names: by its own name, or as an attribute of a module that it imports."""
    module = importlib.import_module(name)
    assert module.__file__ is not None
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if isinstance(node, ast.Name):
            yield vars(module).get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = vars(module).get(node.value.id)
            if isinstance(owner, ModuleType):
                yield vars(owner).get(node.attr)


@pytest.mark.parametrize("action", ACTIONS)
def test_what_two_edges_offer_is_the_same_function(action: str) -> None:
    module, _, name = action.partition(":")
    function = getattr(importlib.import_module(module), name)
    for edge in ACTIONS[action]:
        assert any(used is function for used in _used_by(edge)), edge


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
