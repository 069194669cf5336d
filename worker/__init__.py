"""The worker process: `celery -A worker worker`. Exposes `celery` with its tasks registered."""

import sys
import warnings

from celery.platforms import SecurityWarning

from app.errors import SettingsError
from app.messaging.jobs import celery
from app.settings import settings

# Celery warns root because of pickled messages; this worker accepts JSON only.
warnings.simplefilter("ignore", SecurityWarning)

try:
    settings()
    # Only a process with good settings gets further.
    from worker import watching

    if "flower" in sys.argv:  # `celery --app worker flower …`: no signal comes before it starts.
        watching.prepare_flower(sys.argv)
    elif "beat" not in sys.argv:  # These two run no task, and take far less memory without what tasks need.
        from app.mail.server import require_public_url

        require_public_url()
        from worker import alive, deliveries, mail, processes, tasks  # noqa: F401
except SettingsError as error:
    # A worker that cannot run says why in one sentence, without a traceback of Celery's loader.
    raise SystemExit(f"points: {error}") from None

__all__ = ["celery"]
