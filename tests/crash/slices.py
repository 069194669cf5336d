"""Slices of the long run: what earlier slices of a seed have done, and the figures of all, kept in `benchmarks/`."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[2] / "benchmarks"
_FIGURES, _PAGE = _FOLDER / "soak.json", _FOLDER / "SOAK.md"
SENDS, FAULTS = 100_000, 10_000

_HEAD = f"""# The long run

What `make soak` gave: slices of a plan of {FAULTS:,} faults and {SENDS:,} acknowledged sends for each seed. A slice
goes on where the last one of its seed ended, on a new database. A seed gives another plan on a commit with other kinds
of fault. How it is tested: [reliability](../docs/reliability.md).

"""
_COLUMNS = {
    "seed": "seed",
    "slice": "slice",
    "commit": "commit",
    "minutes": "min",
    "faults": "faults",
    "sends_acknowledged": "sends (201)",
    "reversals_acknowledged": "taken back",
    "returned": "returned",
    "cancelled": "cancelled",
    "events_delivered": "events delivered",
    "events_delivered_again": "of them again",
    "unknown_outcomes": "retries of unknown outcome",
    "recovery_s_max": "longest recovery, s",
    "deadlocks": "deadlocks",
    "violations": "violations",
}
_SUMS = [name for name in _COLUMNS if name not in ("seed", "slice", "commit", "recovery_s_max")]


def all_slices() -> list[dict[str, Any]]:
    """Return the figures of every slice so far, the first first."""
    slices: list[dict[str, Any]] = json.loads(_FIGURES.read_text()) if _FIGURES.exists() else []
    return slices


def of_seed(seed: int) -> list[dict[str, Any]]:
    """Return the figures of the slices of one seed."""
    return [one for one in all_slices() if one["seed"] == seed]


def record(one: dict[str, Any]) -> None:
    """Add a slice, and write the page anew."""
    slices = [*all_slices(), one]
    _FIGURES.write_text(json.dumps(slices, indent=1) + "\n")
    _PAGE.write_text(_HEAD + tables(slices))


def as_slice(figures: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a run."""
    one = {name: figures[name] for name in figures if name in _COLUMNS or name == "faults_by_kind"}
    minutes, number = round(figures["seconds"] / 60, 1), len(of_seed(figures["seed"])) + 1
    return one | {"minutes": minutes, "slice": number, "commit": _commit(), "violations": len(figures["violations"])}


def tables(slices: list[dict[str, Any]]) -> str:
    """Return tables with a row for each slice, their sums, and how often each fault came."""
    total = {name: round(sum(one[name] for one in slices), 1) for name in _SUMS}
    total |= {
        "seed": "all",
        "slice": len(slices),
        "commit": "",
        "recovery_s_max": max(one["recovery_s_max"] for one in slices),
    }
    rows = [list(_COLUMNS.values()), ["---"] * len(_COLUMNS)]
    rows += [[_shown(name, one[name]) for name in _COLUMNS] for one in [*slices, total]]
    kinds = sorted({kind for one in slices for kind in one["faults_by_kind"]})
    times = [[kind.replace("_", " "), str(sum(one["faults_by_kind"].get(kind, 0) for one in slices))] for kind in kinds]
    faults = [["fault", "times"], ["---", "---"], *times]
    return "\n\n".join("\n".join(f"| {' | '.join(row)} |" for row in table) for table in (rows, faults)) + "\n"


def _commit() -> str:
    """Return the short name of the commit that is checked out, marked if files differ from it."""
    git = shutil.which("git")
    if git is None:
        return ""
    command = [git, "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=_FOLDER, capture_output=True, text=True, check=False).stdout.strip()


def _shown(name: str, value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) and name != "seed" else str(value)
