"""A worker's slots: how many messages it may hold, and what becomes of one whose acknowledgement did not arrive."""

from typing import Any

from kombu.transport import redis


class SlotsThatComeFree(redis.QoS):
    """Frees the slot of a message that was worked off, also when Redis did not hear of it.

    kombu keeps the slot then: after as many unheard acknowledgements as a worker has processes, which takes a
    Redis that is silent for a second or two, the worker is up, answers every ping and never takes a message again.
    The message itself comes once more after the visibility timeout, and finds nothing to do.
    """

    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]
        except Exception:
            self._quick_ack(delivery_tag)
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        try:
            super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]
        except Exception:
            self._quick_ack(delivery_tag)
            raise


def install() -> None:
    """Let every connection of this process to Redis, and through Sentinels, count its slots so."""
    channel: Any = redis.Channel
    channel.QoS = SlotsThatComeFree
