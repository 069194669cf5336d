"""The lines of many processes in one pipe: each is whole, whoever writes meanwhile, forks, or is interrupted."""

import json
import os
import subprocess
import sys
from collections import Counter

_PROCESSES = 3
_THREADS = 2
_LINES = 200
_CHILDREN = 10

# Each process logs from threads, from a signal handler that interrupts its main thread, and from forked children.
_LOG = f"""
import os, signal, sys, threading
from app import logs

number = sys.argv[1]
logs.configure("web", log_format="json")
log = logs.logger()

def lines(who, count):
    for n in range(count):
        log.info("line", process=number, who=who, n=n, filler="x" * (n * 97 % 3_900))

signal.signal(signal.SIGALRM, lambda *_: log.warning("interrupted", filler="y" * 3_000))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
threads = [threading.Thread(target=lines, args=("thread", {_LINES})) for _ in range({_THREADS})]
for thread in threads:
    thread.start()
for _ in range({_CHILDREN}):
    if not (child := os.fork()):
        lines("child", 3)
        os._exit(0)
    lines("main", {_LINES} // {_CHILDREN})
    assert os.waitpid(child, 0)[1] == 0
for thread in threads:
    thread.join()
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_no_line_is_torn_or_lost_whichever_processes_and_threads_write_into_one_pipe() -> None:
    read, write = os.pipe()
    command = [sys.executable, "-c", _LOG]
    started = [subprocess.Popen([*command, str(number)], stderr=write) for number in range(_PROCESSES)]
    os.close(write)
    try:
        with open(read, "rb") as pipe:
            written = pipe.read()  # Until the last of them has ended.
        assert [process.wait() for process in started] == [0] * _PROCESSES
    finally:
        for process in started:
            process.kill()
    lines = [json.loads(line) for line in written.splitlines()]
    told = Counter((line["process"], line["who"]) for line in lines if line["event"] == "line")
    of_each = {"thread": _THREADS * _LINES, "main": _LINES, "child": _CHILDREN * 3}
    assert told == {(str(n), who): count for n in range(_PROCESSES) for who, count in of_each.items()}
    assert any(line["event"] == "interrupted" for line in lines)


def test_whoever_read_the_log_may_go_and_the_work_goes_on() -> None:
    read, write = os.pipe()
    os.close(read)
    work = "from app import logs; logs.logger().error('unheard'); print('done')"
    done = subprocess.run([sys.executable, "-c", work], stderr=write, stdout=subprocess.PIPE, check=True, text=True)
    os.close(write)
    assert done.stdout == "done\n"
