"""Making load: plans of callers, their processes (`benchmarks.caller`), and the results."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.local.ports import HOST
from benchmarks.caller import Caller
from benchmarks.options import NotMeasured
from benchmarks.rows import percentile

WARM_UP_S = 0.3
# Time for a process of callers to start and connect, before all begin together.
_START_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`callers` that send these requests in turn to a port of this machine, expecting one status.

    Each sends its next request after the answer, and not before `every_s` seconds have passed since its last one.
    """

    port: int
    requests: Sequence[bytes]
    callers: int
    expect: int = 201
    every_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The latencies of one plan's callers in the counted seconds, and their CPU time meanwhile.

    `calls_in_all` includes the warm-up.
    """

    seconds: float
    calls_in_all: int
    latencies_s: Sequence[float] = field(repr=False)
    cpu_s: float

    @property
    def calls(self) -> int:
        return len(self.latencies_s)

    def figures(self) -> dict[str, float]:
        """Return the rate, and the latencies p50 and p99.

        Raises:
            NotMeasured: no call ended in the counted seconds.
        """
        if not self.latencies_s:
            raise NotMeasured("No call ended in time; let them call for longer, with --seconds.")
        return {
            "rate_per_s": self.calls / self.seconds,
            "p50_s": percentile(self.latencies_s, 0.5),
            "p99_s": percentile(self.latencies_s, 0.99),
        }


def together(seen: Sequence[Seen]) -> Seen:
    """Merge the results of plans that ran at the same time."""
    return Seen(
        seconds=seen[0].seconds,
        latencies_s=sorted(latency for one in seen for latency in one.latencies_s),
        calls_in_all=sum(one.calls_in_all for one in seen),
        cpu_s=sum(one.cpu_s for one in seen),
    )


def load(*plans: Plan, seconds: float) -> list[Seen]:
    """Run the plans at the same time, each in a process.

    Raises:
        NotMeasured: a call got another status, or no answer.
    """
    start_at = time.time() + _START_S
    processes = [_start(plan, start_at=start_at, seconds=seconds) for plan in plans]
    seen = []
    for process in processes:
        output, _ = process.communicate(timeout=seconds + 120)
        if process.returncode != 0:
            raise NotMeasured("The load generator failed; its output above says why.")
        document = json.loads(output)
        if document["failures"]:
            raise NotMeasured(f"Calls failed, {document['failures']}")
        document["latencies_s"].sort()
        del document["failures"]
        seen.append(Seen(seconds=seconds, **document))
    return seen


def _start(plan: Plan, *, start_at: float, seconds: float) -> subprocess.Popen[str]:
    document = {
        "host": HOST,
        "port": plan.port,
        "requests": [request.decode("latin-1") for request in plan.requests],
        "callers": plan.callers,
        "expect": plan.expect,
        "every_s": plan.every_s,
        "start_at": start_at,
        "warm_up_s": WARM_UP_S,
        "seconds": seconds,
    }
    # Run as a file, not with -m: it then imports only the standard library.
    program = str(Path(__file__).with_name("caller.py"))
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(document))
    process.stdin.close()
    process.stdin = None  # `communicate` must not close it again.
    return process


def answered_s(caller: Caller, request: bytes, *, expect: int) -> float:
    """Make one call and return the seconds it took.

    Raises:
        NotMeasured: the answer has another status than expected.
    """
    status, seconds = caller.exchange(request)
    if status != expect:
        raise NotMeasured(f"A call was answered with {status} instead of {expect}.")
    return seconds


def get(path: str, *, key: str | None = None) -> bytes:
    """Return the bytes of a GET request."""
    authorization = "" if key is None else f"Authorization: Bearer {key}\r\n"
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: application/json\r\n{authorization}\r\n".encode()


def post_send(key: str, emails: Sequence[str], *, path: str = "/v1/points/send") -> bytes:
    """Return the bytes of a send of one point to each address."""
    return post(key, path, {"recipients": list(emails), "amount": 1})


def post_items(key: str, emails: Sequence[str]) -> bytes:
    """Return the bytes of a send of another amount to each address, each with a reference."""
    items = [{"email": email, "amount": 1 + place, "reference": f"order-{place}"} for place, email in enumerate(emails)]
    return post(key, "/v1/points/send", {"items": items})


def post(key: str, path: str, fields: Mapping[str, object]) -> bytes:
    """Return the bytes of a POST request."""
    body = json.dumps(fields).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nAccept: application/json\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
