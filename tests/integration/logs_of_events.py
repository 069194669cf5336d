"""The event log as a test handles it: numbered at once, and read whole."""

from typing import Any

import orjson

from app import event as log_pages
from app.event import render
from app.events import sequencer
from app.scope import Scope
from tests.integration import books


def number_all() -> int:
    """Number every event that waits, as the upkeep does, and return how many there were."""
    numbered = 0
    organizations = books.run(sequencer.organizations_to_number)
    for organization_id in organizations:
        while True:
            step = books.run(sequencer.number_events, organization_id)
            numbered += step
            if step < sequencer.NUMBERED_MAX:
                break
    return numbered


def rendered(organization_id: int, *, sandbox: bool = False, after: int = 0) -> list[bytes]:
    """Return the JSON of an organization's events, oldest first, without numbering any."""
    page = books.run(log_pages.page, Scope(organization_id, sandbox=sandbox), after=after, limit=100_000)
    return [render(event) for event in page]


def events_of(organization_id: int, *, sandbox: bool = False, after: int = 0) -> list[dict[str, Any]]:
    """Number what waits and return an organization's events, oldest first."""
    number_all()
    return [orjson.loads(event) for event in rendered(organization_id, sandbox=sandbox, after=after)]


def types_of(organization_id: int, *, sandbox: bool = False, after: int = 0) -> list[str]:
    """Number what waits and return the types of an organization's events, oldest first."""
    return [event["type"] for event in events_of(organization_id, sandbox=sandbox, after=after)]
