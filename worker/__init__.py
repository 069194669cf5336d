"""The worker process: `celery -A worker worker`. Exposes `celery` with its tasks registered."""

import sys
import warnings

from celery.platforms import SecurityWarning

from app.errors import SettingsError
from app.mail.server import require_public_url
from app.messaging.jobs import celery

# Celery warns root because of pickled messages; this worker accepts JSON only.
warnings.simplefilter("ignore", SecurityWarning)

try:
    require_public_url()  # It reads the settings.
except SettingsError as error:
    # A worker that cannot run says why in one sentence, without a traceback of Celery's loader.
    raise SystemExit(f"points: {error}") from None

from worker import alive, deliveries, mail, processes, tasks  # noqa: E402  # Only a process with good settings gets this far.

if "flower" in sys.argv:  # `celery --app worker flower …`: no signal comes before it starts.
    processes.prepare_flower(sys.argv)

__all__ = ["alive", "celery", "deliveries", "mail", "processes", "tasks"]
