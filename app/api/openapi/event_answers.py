"""The data of answers about events."""

from typing import Annotated

from pydantic import BaseModel

from app.event import PlatformEvent, events
from app.noun import says

_Event = events.model
LastSequence = Annotated[
    int,
    says(
        "Every event up to this sequence was looked at: use it as `after` of the next call. Without `types` it is the"
        " sequence of the last event here; in a log without events it is 0.",
        4,
        ge=0,
    ),
]


class EventList(BaseModel):
    """The next events, oldest first."""

    events: list[_Event] = says("The events after `after`.")  # type: ignore[valid-type]
    last_sequence: LastSequence


class PlatformEventList(BaseModel):
    """The next events, oldest first."""

    events: list[PlatformEvent] = says("The events after `after`.")  # type: ignore[valid-type]
    last_sequence: LastSequence
