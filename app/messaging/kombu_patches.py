"""Patches of kombu's Redis channel, which would otherwise lose slots for messages or end the worker."""

from typing import Any

from kombu.transport import redis


class AckFreesSlot(redis.QoS):
    """Frees the slot of a finished message even if its acknowledgement did not reach Redis.

    kombu keeps the slot in that case. After as many failed acknowledgements as the worker has processes (if Redis is
    silent for a second or two), the worker still answers pings but never takes a message again. The message itself is
    delivered again after the visibility timeout, and then there is nothing to do.
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


_parameters = redis.Channel._connparams  # noqa: SLF001  # As the function below says.


def _parameters_of_a_connection_that_is_there(channel: redis.Channel, asynchronous: bool = False) -> Any:
    """Raise a connection error if the connection is gone. The function is private in kombu, but every use calls it.

    A channel that is closed after its connection was collected gives back its unacknowledged messages. kombu then asks
    None for its address, and the AttributeError ends the worker with status 1.
    """
    if channel.connection is None or channel.connection.client is None:
        raise ConnectionResetError("the connection was lost before its channel was closed")
    return _parameters(channel, asynchronous)  # type: ignore[no-untyped-call]


def apply() -> None:
    """Patch kombu's Redis channels in this process, behind Sentinels too. Safe to call repeatedly."""
    redis.Channel.QoS = AckFreesSlot
    redis.Channel._connparams = _parameters_of_a_connection_that_is_there  # type: ignore[method-assign]  # noqa: SLF001
