"""The CPU time of a request's metrics, record and log line: `python -m benchmarks.observing`."""

import os
from collections.abc import Callable
from time import process_time

from flask import Flask, Response

from app import logs
from app.ledger.drain import counts_of
from app.ledger.issue import Outcome
from app.metrics.requests import count_request, current_record
from app.web.recording import _begin, _end, _end_with_line

_TIMES = 2_000
_ROUNDS = 15


def _microseconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one call: the least of all rounds, because other load only adds to it."""
    rounds = []
    for _ in range(_ROUNDS):
        began = process_time()
        for _ in range(_TIMES):
            work()
        rounds.append((process_time() - began) / _TIMES * 1e6)
    return min(rounds)


def main() -> None:
    os.environ |= {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}
    logs.configure("bench", log_format="json")
    terminal = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    log = logs.logger()
    round_of_one = Outcome(id=42, sandbox=False, recipients=1, debited_count=1, debited_amount=1, is_late=False)
    app, response = Flask(__name__), Response()
    app.add_url_rule("/v1/points/send", "send", lambda: response, methods=["POST"])
    try:
        with app.test_request_context("/v1/points/send", method="POST"):

            def request(end: Callable[[Response], Response]) -> None:
                _begin()
                record = current_record()
                record.organization_id, record.batch_id, record.waiting_since = 7, 42, record.started_at
                end(response)

            figures = {
                "a request's count and duration": _microseconds(lambda: count_request("POST", "/x", 201, 0.01)),
                "a round of a drain, to count it": _microseconds(lambda: counts_of([round_of_one], seconds=0.01)),
                "a log line": _microseconds(lambda: log.info("event", organization_id=7, batch_id=42)),
                "all of it for a send": _microseconds(lambda: request(_end_with_line)),
                "the same without its line": _microseconds(lambda: request(_end)),
            }
    finally:
        os.dup2(terminal, 2)
    for name, cost in figures.items():
        print(f"{name:<34}{cost:6.1f} µs")


if __name__ == "__main__":
    main()
