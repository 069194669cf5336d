"""What `points status` says of Redis, and of the workers and beat, which answer through it."""

from typing import Any

from redis.exceptions import RedisError

from app.cli.status_of_sessions import READ_ON
from app.messaging import process_redis, worker_counters
from app.messaging.jobs import answering, messages_waiting
from app.messaging.process_redis import redis_client
from app.settings import settings

_TIMEOUT_S = 1.0


def look_at_redis() -> dict[str, Any]:
    """Return what is wrong with Redis, how many messages wait, which workers answer, and when a sweep last ran."""
    found: dict[str, Any] = {
        "redis": None,
        "redis_error": None,
        "queued_messages": None,
        "workers": [],
        "deliveries": [],
        "swept_s_ago": None,
        "is_swept": True,
        "beat": False,
    }
    try:
        with redis_client(settings().redis_url, timeout_s=_TIMEOUT_S, decode_responses=True) as client:
            server = client.info("server")
            release = server.get("valkey_version") or server["redis_version"]
            found["redis"] = f"{server.get('server_name', 'redis')} {release}"
            process_redis.require_writes(client)  # Otherwise no worker can answer either.
            answers = answering(timeout_s=_TIMEOUT_S)
            return found | {
                "queued_messages": messages_waiting(),
                "workers": answers.workers,
                "deliveries": answers.deliveries,
                "is_swept": not answers.workers or worker_counters.is_swept(client),
                "swept_s_ago": worker_counters.swept_s_ago(client),
                "beat": answers.beat,
            }
    except RedisError as error:
        return found | {"redis_error": process_redis.in_words(error)}


def down_with_redis(found: dict[str, Any]) -> list[str]:
    """Return a sentence for Redis, or for each part that answers through it and does not."""
    if found["redis_error"] is not None:
        return [f"Redis {found['redis_error']}. {READ_ON} “503”."]
    down = []
    if not found["deliveries"]:
        down.append(f"No worker delivers to webhooks. {READ_ON} “A webhook is behind”.")
    if not found["workers"]:
        down.append(f"No worker answers. {READ_ON} “Sends answer 202”.")
    if not found["is_swept"]:
        since = f"no sweep has run for {found['swept_s_ago']:.0f} s"
        down.append(f"Workers answer, and {since}. {READ_ON} “Sends answer 202”.")
    if found["beat"] is False:
        down.append(f"Beat does not answer: no audit runs by itself. {READ_ON} “Web, beat or Flower does not answer”.")
    return down
