"""Makes what of the client is not written by hand: `results.py`, `_async/nouns.py`, and `_sync` from `_async`.

    python -m client.generate    writes the files (`make format` does it)

`_sync` is the same code without `async` and `await`. A test compares what this would write with what is there.
"""

import re
import subprocess
import sys
from pathlib import Path

from client import make_calls, make_results

# In `_sync` in words of its own: threads in the place of tasks.
BY_HAND = {"in_order.py"}

_REPLACED = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bfrom asyncio import (?:get_running_loop, )?sleep\b", "from time import sleep"),
    (r"\bget_running_loop\(\)", ""),
    (r" \| AsyncIterable\[.*\]", ""),
    (r"\bAsyncIterable, ", ""),
    (r"\banext\(", "next("),
    (r"\b(Abstract)?Async(?=[A-Z])", r"\1"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\bpoints_client\._async\b", "points_client._sync"),
]
_OPENING = '"""The calls without `async`: made from `_async` by `generate.py`. Edit the files there."""\n'


def make(package: Path) -> None:
    """Write each file that is made."""
    made = [package / "results.py", package / "_async" / "nouns.py"]
    made[0].write_text(make_results.text(), encoding="utf-8")
    made[1].write_text(make_calls.text(), encoding="utf-8")
    _tidy(made)
    without = [path for path in sorted((package / "_async").glob("*.py")) if path.name not in BY_HAND]
    for path in without:
        (package / "_sync" / path.name).write_text(_without_async(path), encoding="utf-8")
    _tidy([package / "_sync" / path.name for path in without])


def _tidy(paths: list[Path]) -> None:
    for step in (["check", "--quiet", "--select", "F401,I", "--fix"], ["format", "--quiet"]):
        subprocess.run([sys.executable, "-m", "ruff", *step, *map(str, paths)], check=True)


def _without_async(path: Path) -> str:
    if path.name == "__init__.py":
        return _OPENING
    text = path.read_text(encoding="utf-8")
    for pattern, replacement in _REPLACED:
        text = re.sub(pattern, replacement, text)
    return text


if __name__ == "__main__":
    make(Path(__file__).parent / "src" / "points_client")
