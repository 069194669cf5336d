"""kombu's channel to Redis, mended where it would lose a slot, and where it works longer than it has to."""

from typing import Any

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


_new_client = redis.Channel._create_client  # noqa: SLF001


def _client_of_the_pool(channel: Any, asynchronous: bool = False) -> Any:
    """Return one client for as long as the channel has its pool.

    kombu makes one for each message that is sent or acknowledged, which takes longer than to send it. A client
    holds nothing but its pool.
    """
    if asynchronous:
        return _new_client(channel, asynchronous=True)  # type: ignore[no-untyped-call]
    client = vars(channel).get("_client")
    if client is None or client.connection_pool is not channel.pool:
        client = channel._client = _new_client(channel)  # type: ignore[no-untyped-call]  # noqa: SLF001
    return client


def apply() -> None:
    """Let every connection of this process to Redis, and through Sentinels, be so. Once or more is the same."""
    channel: Any = redis.Channel
    channel.QoS = AckFreesSlot
    channel._create_client = _client_of_the_pool  # noqa: SLF001
