"""What `points status` says: what is wrong and where to read on, and a line for each thing that it looks at."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.postgres import partitions
from app.postgres.snapshots import Snapshot
from app.settings import without_password
from app.values.numbers import points

Found = Mapping[str, Any]

_READ_ON = "Read on in docs/operating.md at"
_ANSWERS = {None: "unknown", True: "answers", False: "does not answer"}


def down(found: Found) -> list[str]:
    """Return a sentence for each part that is down, with the heading in docs/operating.md where to read on."""
    database, ahead = found["database_error"], found["partitions_ahead"]
    if database is None and found["queued_batches"] is None:  # It answers, but could not be asked for the queue.
        database = "it has no tables yet"
    standby, no_answer = found.get("standby", {}).get("fault"), "Web, beat or Flower does not answer"
    faults = [
        (database, f"PostgreSQL: {database}", "503"),
        (standby, f"The standby: {standby}. Reads ask the primary", "A standby for the long reads"),
        (
            ahead is not None and ahead < partitions.AHEAD_MIN,
            f"Of {partitions.AHEAD_MIN} partitions ahead there are {ahead}",
            "Few partitions",
        ),
        *faults_with_redis(found),
        *((found[page] is False, f"{page.capitalize()} does not answer", no_answer) for page in ("web", "flower")),
    ]
    return [f"{sentence}. {_READ_ON} “{heading}”." for is_wrong, sentence, heading in faults if is_wrong]


def faults_with_redis(found: Found) -> Sequence[tuple[bool, str, str]]:
    """Return the fault of Redis, or those of each part that answers through it: whether it is there, in words."""
    if found["redis_error"] is not None:
        return [(True, f"Redis {found['redis_error']}", "503")]
    unswept = f"Workers answer, and no sweep has run for {found['swept_s_ago'] or 0:.0f} s"
    no_audit = "Beat does not answer: no audit runs by itself"
    return [
        (not found["deliveries"], "No worker delivers to webhooks", "A webhook is behind"),
        (not found["workers"], "No worker answers", "Sends answer 202"),
        (not found["is_swept"], unswept, "Sends answer 202"),
        (found["beat"] is False, no_audit, "Web, beat or Flower does not answer"),
    ]


def warnings(found: Found) -> list[str]:
    """Return a sentence of a snapshot that is too old: nothing is down, and sends become slower."""
    document = found["oldest_snapshot"]
    if document is None:
        return []
    oldest = Snapshot(**{name: document[name] for name in Snapshot._fields})
    if not oldest.is_too_old:
        return []
    since = f"For {oldest.seconds / 60:.0f} minutes {oldest.who()} has kept vacuum from removing dead rows"
    return [f"{since}, and sends become slower: {oldest.remedy()}. {_READ_ON} “A snapshot is held open”."]


def described(found: Found) -> str:
    wrong = [*found["down"], *found["warnings"]]
    lines = {"Status": " ".join(["not well." if wrong else "all is well.", *wrong])}
    lines |= {name: words for name, word in _LINES.items() if (words := word(found)) is not None}
    return "\n".join(f"{name + ':':<16}{words}".rstrip() for name, words in lines.items())


def _settings(found: Found) -> str | None:
    """Word the settings that sessions behind a pooler lack; None if they lack none."""
    lacks = [f"{lack['name']} is {lack['value']} ({lack['mend']})" for lack in found["settings_missing"] or ()]
    return f"{'; '.join(lacks)}. {_READ_ON} “PgBouncer”." if lacks else None


def _standby_in_words(found: Found) -> str | None:
    state = found.get("standby")
    if state is None:
        return None
    behind = state["fault"] or (
        f"PostgreSQL {state['release']}, {state['lag_s']:.0f} s and {points(state['lag_bytes'])} bytes behind"
    )
    return f"{behind}  {without_password(found['database_read_url'])}"


def _workers(found: Found) -> str:
    swept = "no sweep seen" if found["swept_s_ago"] is None else f"swept {found['swept_s_ago']:.0f} s ago"
    return f"{', '.join(found['workers']) or 'none answers'} ({swept})"


def _deliveries(found: Found) -> str:
    return f"{', '.join(found['deliveries']) or 'none answers'} ({_webhooks(found['webhooks'])})"


def _webhooks(by_status: Found | None) -> str:
    """Word how many webhooks there are, and the largest lag of those that are not disabled."""
    if by_status is None:
        return "unknown"
    sent_to = [by_status["enabled"], by_status["failing"]]
    behind_s, behind = max(lag["seconds"] for lag in sent_to), max(lag["events"] for lag in sent_to)
    counts = ", ".join(f"{lag['webhooks']} {name}" for name, lag in by_status.items() if lag["webhooks"])
    return f"{counts}; at most {points(behind)} events and {behind_s:.0f} s behind" if counts else "no webhooks"


def _number(key: str, words: str = "{}") -> Callable[[Found], str]:
    return lambda found: "unknown" if found[key] is None else words.format(points(found[key]))


def _oldest(found: Found, words: str | None) -> str:
    """Word an age if there is something that has one."""
    return words or ("unknown" if found["queued_batches"] is None else "–")


_LINES: Mapping[str, Callable[[Found], str | None]] = {
    "Version": lambda found: str(found["version"]),
    "Database": lambda found: (
        f"{found['database'] or found['database_error']}  {without_password(found['database_url'])}"
    ),
    "Settings": _settings,
    "Standby": _standby_in_words,
    "Redis": lambda found: f"{found['redis_error'] or found['redis']}  {without_password(found['redis_url'])}",
    "Web": lambda found: f"{_ANSWERS[found['web']]}  {found['web_url'] or ''}",
    "Workers": _workers,
    "Deliveries": _deliveries,
    "Beat": lambda found: _ANSWERS[found["beat"]],
    "Flower": lambda found: f"{_ANSWERS[found['flower']]}  {found['flower_url'] or ''}",
    "Messages": _number("queued_messages"),
    "Queued batches": _number("queued_batches"),
    "Reversals": _number("queued_reversals", "{} queued"),
    "Oldest queued": lambda found: _oldest(
        found, None if found["oldest_queued_s"] is None else f"{found['oldest_queued_s']:.1f} s"
    ),
    "Snapshot": lambda found: _oldest(
        found, None if found["oldest_snapshot"] is None else f"{found['oldest_snapshot']['seconds']:.0f} s"
    ),
    "Partitions": _number("partitions_ahead", "{} ahead"),
}
