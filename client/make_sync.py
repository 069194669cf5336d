"""Makes `points_client/_sync` from `points_client/_async`: the same code without `async` and `await`.

    python client/make_sync.py    writes the files (`make format` does it)

A test compares what this would write with what is there.
"""

import re
import subprocess
import sys
from pathlib import Path

# In `_sync` in words of its own: threads in the place of tasks.
BY_HAND = {"in_order.py"}

_REPLACED = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bfrom asyncio import (?:get_running_loop, )?sleep\b", "from time import sleep"),
    (r"\bget_running_loop\(\)", ""),
    (r"\bAwaitable, ", ""),
    (r" \| AsyncIterable\[.*\]", ""),
    (r"\bAsyncIterable, ", ""),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\banext\(", "next("),
    (r"\bAbstractAsyncContextManager\b", "AbstractContextManager"),
    (r"\bhttpx\.Async(\w+)", r"httpx.\1"),
    (r"\bAsync(Points|Consumer|Caller|Batches|Transactions|Reversals|Requests|Events|Webhooks|Rehearsing)\b", r"\1"),
    (r"\bAsync(PlatformPoints|Users|Organizations|Connected)\b", r"\1"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\bpoints_client\._async\b", "points_client._sync"),
]
_OPENING = '"""The calls without `async`: made from `_async` by `make_sync.py`. Edit the files there."""\n'


def make(package: Path) -> None:
    """Write each file of `_sync` that is made."""
    made = []
    for path in sorted((package / "_async").glob("*.py")):
        if path.name not in BY_HAND:
            made.append(package / "_sync" / path.name)
            made[-1].write_text(_without_async(path), encoding="utf-8")
    for step in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
        subprocess.run([sys.executable, "-m", "ruff", *step, *map(str, made)], check=True)


def _without_async(path: Path) -> str:
    if path.name == "__init__.py":
        return _OPENING
    text = path.read_text(encoding="utf-8")
    for pattern, replacement in _REPLACED:
        text = re.sub(pattern, replacement, text)
    return text


if __name__ == "__main__":
    make(Path(__file__).parent / "src" / "points_client")
