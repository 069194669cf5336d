"""A client of the Points Issuing Service: `Points` and `PlatformPoints`, and `Async…` with the same names."""

from points_client import errors, results
from points_client._async.client import AsyncPlatformPoints, AsyncPoints
from points_client._async.consumer import AsyncConsumer
from points_client._sync.client import PlatformPoints, Points
from points_client._sync.consumer import Consumer
from points_client.attempts import RETRIED, Wait
from points_client.errors import *  # noqa: F403  # As `errors.__all__` names them.
from points_client.event import Event, EventPage, verify_webhook
from points_client.results import *  # noqa: F403  # Each answer of the service, as `results.__all__` names them.
from points_client.version import __version__

__all__ = [
    "AsyncConsumer",
    "AsyncPlatformPoints",
    "AsyncPoints",
    "Consumer",
    "PlatformPoints",
    "Points",
    "__version__",
    "verify_webhook",
]
__all__ += ["RETRIED", "Event", "EventPage", "Wait"]
__all__ += errors.__all__
__all__ += results.__all__
