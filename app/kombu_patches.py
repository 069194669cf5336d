"""kombu's channel to Redis, mended where it would lose a slot."""

from kombu.transport import redis


class AckFreesSlot(redis.QoS):
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


def apply() -> None:
    """Have kombu's Redis channels in this process use it, behind Sentinels too. Safe to call repeatedly."""
    redis.Channel.QoS = AckFreesSlot
