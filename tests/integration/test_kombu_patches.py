"""kombu's mended channel: slots come free although Redis did not hear of it."""

import logging
from typing import Any

import pytest
from celery import Celery

from app.messaging import jobs
from tests.crash.proxy import Proxy

pytestmark = pytest.mark.usefixtures("broker")


@pytest.mark.parametrize("how", ["ack", "reject", "requeue"])
def test_a_slot_comes_free_although_nobody_hears_of_it(how: str, redis_proxy: Proxy) -> None:
    with Celery(set_as_current=False) as app:
        app.add_defaults(jobs._configuration)
        app.send_task(jobs.AUDIT, queue=jobs.QUEUE)
        with app.connection_for_read() as connection, connection.channel() as channel:
            channel.basic_qos(0, 1, False)
            message: Any = channel.basic_get(jobs.QUEUE)
            assert not channel.qos.can_consume()
            redis_proxy.tell("hole")
            logger = logging.getLogger("slots")
            if how == "ack":
                message.ack_log_error(logger, connection.connection_errors)
            else:
                message.reject_log_error(logger, connection.connection_errors, requeue=how == "requeue")
            assert channel.qos.can_consume()
            redis_proxy.tell("forward")
