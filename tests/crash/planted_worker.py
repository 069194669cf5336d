"""The worker process with pauses planted in it: `celery --app tests.crash.planted_worker`."""

import os
import time
from functools import partial
from pathlib import Path

from celery.signals import task_prerun

from app.ledger import drain
from app.ledger import issue as issuing
from app.messaging import hints
from tests.crash import planted as places
from worker import celery, tasks

# The organization's row is locked, and nothing is written under the lock.
places.plant(issuing, "_decide_and_write", partial(places.reach, places.WORKER_AFTER_LOCK))
# Everything is written, and not committed.
places.plant(drain, "issue", partial(places.reach, places.WORKER_BEFORE_COMMIT), after=True)
# The round is committed, and nobody has been told.
places.plant(hints, "publish", partial(places.reach, places.WORKER_AFTER_COMMIT))
# The whole drain is over, and its message is not acknowledged.
places.plant(tasks, "drain_and_stay", partial(places.reach, places.WORKER_BEFORE_ACKNOWLEDGEMENT), after=True)

if places.VISIBILITY_TIMEOUT_S in os.environ:
    # Unacknowledged messages go to somebody else after this time, and are looked for all the time.
    celery.conf.broker_transport_options = {
        **celery.conf.broker_transport_options,
        "visibility_timeout": float(os.environ[places.VISIBILITY_TIMEOUT_S]),
        "unacked_restore_interval": 0.5,
        "unacked_restore_throttle": 1,
    }

    def _note_delivery(task_id: str, **_: object) -> None:
        with (Path(os.environ[places.FOLDER]) / places.DELIVERIES).open("a") as notes:
            notes.write(f"{task_id}\n")

    task_prerun.connect(_note_delivery, weak=False)


if places.DRAIN_LASTS_S in os.environ:
    places.plant(
        tasks, "drain_and_stay", lambda *_, **__: time.sleep(float(os.environ[places.DRAIN_LASTS_S])), after=True
    )

__all__ = ["celery"]
