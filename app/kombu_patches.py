"""A patch of kombu's Redis channel, which would otherwise lose slots for messages."""

from kombu.transport import redis


class AckFreesSlot(redis.QoS):
    """Frees the slot of a finished message even if its acknowledgement did not reach Redis.

    kombu keeps the slot then. After as many failed acknowledgements as a worker has processes (Redis is silent for a
    second or two), the worker answers every ping but never takes a message again. The message itself comes once more
    after the visibility timeout, and finds nothing to do.
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


def apply() -> None:
    """Patch kombu's Redis channels in this process, behind Sentinels too. Safe to call repeatedly."""
    redis.Channel.QoS = AckFreesSlot
