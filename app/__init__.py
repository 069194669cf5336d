"""The Points Issuing Service.

The nouns are files in this folder; the edges call them and never each other.

    settings, errors, addresses, names,  values and rules that need nothing else
    keys, timestamps, utf8
    timed_connection, connections,       PostgreSQL: waits with an end, the connections of a process,
    database, models/                    the one place that commits, the tables
    organizations, api_keys, users,      rows: who issues, who may call, who receives,
    batches                              and what has been accepted
    acceptance                           the one statement that knows who calls and accepts what they send
    redis_client, process_redis          Redis: by its address, and as a process reaches it
    hints, last_runs                     what is told over it: which batches are final, when a sweep and an audit ran
    broker, kombu_patches, queue,        the Celery app, how a drain is asked for,
    queue_state                          and how the queue stands
    logs, counters                       what is told, and what the workers count
    ledger/                              the only code that touches a balance
    pages/                               lists of batches and transactions, page by page
    metrics/                             what `GET /metrics` shows, and where each figure comes from
    lists/                               lists of people as files: bytes in, rows with lines and reasons out
    api/  cli/                           the edges of this package: HTTP, and a person's terminal
    local/                               embedded PostgreSQL and Valkey, and the supervisor of `points up`

The third edge is the `worker` package beside this one. To see the whole service, follow one send
from `app/api/send.py` through `app/api/sending/` to `worker/tasks.py` and back; `worker/upkeep.py` needs no message.
"""
