"""Events, as they are read from the log and from a webhook."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from points_client.answers import Answer, Unlike
from points_client.reading import read


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened, in the order of `sequence`: 1, 2, 3 … without gaps, of an organization and mode.

    Or of the platform: then `organization` is empty, and `data` alone says what it is about.

    `id` is stable. `data` is what it is about, as JSON. In `batch.issued`, `data["batch"]` is as in the list.
    `document` is the whole event as it came, including fields that this class does not know.
    """

    type: str
    timestamp: datetime
    id: str
    sequence: int
    sandbox: bool
    data: Mapping[str, Any]
    organization: Mapping[str, Any]
    document: Mapping[str, Any]
    version: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EventPage:
    """Some events after the sequence `after`. The log was looked through up to `last_sequence`, also without an event.

    0 as `after`: from the oldest event that is kept.
    """

    after: int
    events: tuple[Event, ...]
    last_sequence: int


def is_asked_for(event: Event, types: Sequence[str] | None) -> bool:
    """Tell whether an event is of one of these types, `*` stands for any part of one; None: all."""
    patterns = (re.escape(one).replace(r"\*", ".*") for one in ",".join(types or ()).split(","))
    return types is None or any(re.fullmatch(one, event.type) for one in patterns)


def read_page(after: int, answer: Answer) -> EventPage:
    """Return an answer as a page of events after `after`.

    Raises:
        Exception: it is none; `Attempts.answered` is the guard.
    """
    events = tuple(map(read_event, answer.data["events"]))
    page = EventPage(after=after, events=events, last_sequence=answer.data["last_sequence"])
    places = [after, *(one.sequence for one in page.events), page.last_sequence]
    if sorted(places) != places:
        raise Unlike("its events are not those asked for")
    return page


def read_event(document: Mapping[str, Any]) -> Event:
    """Return a JSON object as an event.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is not an event.
    """
    organization = {} if document["organization"] is None else document["organization"]
    return read(Event, {**document, "organization": organization, "document": document})
