"""The web process with pauses planted in it: `gunicorn --config python:tests.crash.planted_web`."""

from functools import partial

from app.api import calls
from app.batches import payloads
from app.messaging import jobs
from app.web.gunicorn import *  # noqa: F403  # gunicorn reads its settings from this module instead of that one.
from tests.crash import planted as places

# PostgreSQL has been told to commit the batch, and no worker has been told of it.
places.plant(jobs, "submit", partial(places.reach, places.WEB_BETWEEN_COMMIT_AND_SUBMIT))
# A worker has committed the batch, and its caller has not been answered.
places.plant(payloads, "issued_payload", partial(places.reach, places.WEB_AFTER_COMMIT_BEFORE_ANSWER))
# A user is registered, and what was held is claimed; the platform has not been answered.
places.plant(calls, "once", partial(places.reach, places.WEB_AFTER_CLAIM_BEFORE_ANSWER), after=True)
