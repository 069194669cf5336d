"""Senders in a network of its own, who send to one address after the other until one answers.

`python -m tests.operations.senders KEY URL…` sends until its input ends, and writes each status, or `none`.
"""

import itertools
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx

from tests.deadline import until
from tests.unit.deployment.files import ROOT

_SENDERS = 2
_PAUSE_S = 0.2
_ANSWERED_IN_S = 60


class Sending:
    """What the senders were answered so far."""

    def __init__(self, answers: Counter[str]) -> None:
        self.answers = answers

    def goes_on(self, sends: int = 10) -> None:
        """Wait until so many more sends were answered 201."""
        wanted = self.answers["201"] + sends
        until(lambda: self.answers["201"] >= wanted, f"{sends} more sends are answered", within_s=_ANSWERED_IN_S)


@contextmanager
def sending(in_its_network: Sequence[str], key: str, *urls: str) -> Iterator[Sending]:
    """Let senders send while the block runs."""
    with beside(in_its_network, "-m", "tests.operations.senders", key, *urls) as answers:
        yield Sending(answers)


@contextmanager
def beside(in_its_network: Sequence[str], *words: str) -> Iterator[Counter[str]]:
    """Run Python in a network until the block and then the program's input end; count the lines that it writes."""
    command = [*in_its_network, sys.executable, *words]
    lines: Counter[str] = Counter()
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        written = process.stdout
        counting = threading.Thread(target=lambda: lines.update(line.strip() for line in written or ()))
        counting.start()
        try:
            yield lines
        except BaseException:
            process.kill()  # Without a web, they would try for ever.
            raise
        finally:
            process.stdin.close()
            counting.join()


def _send(client: httpx.Client, urls: Sequence[str], name: str) -> None:
    """Send once; with its key, a send that is repeated is issued once."""
    body = {"recipients": [f"{name}@example.com"], "amount": 1}
    for url in itertools.cycle(urls):
        try:
            answer = client.post(f"{url}/v1/points/send", json=body, headers={"Idempotency-Key": name})
        except httpx.HTTPError:
            os.write(1, b"none\n")
            time.sleep(_PAUSE_S)
            continue
        os.write(1, b"%d\n" % answer.status_code)
        return


def _keep_sending(sender: int, ended: threading.Event, key: str, urls: Sequence[str]) -> None:
    bearer = {"Authorization": f"Bearer {key}"}
    with httpx.Client(headers=bearer, verify=False, timeout=_ANSWERED_IN_S) as client:  # noqa: S501  # A test's own host.
        for number in itertools.count():
            if ended.wait(_PAUSE_S):
                return
            _send(client, urls, f"s{sender}.{number}")


def main() -> None:
    key, *urls = sys.argv[1:]
    ended = threading.Event()
    senders = [threading.Thread(target=_keep_sending, args=(sender, ended, key, urls)) for sender in range(_SENDERS)]
    for sender in senders:
        sender.start()
    sys.stdin.read()
    ended.set()
    for sender in senders:
        sender.join()


if __name__ == "__main__":
    main()
