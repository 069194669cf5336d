"""`points status`: what it says of the parts and the queue, and what it keeps to itself."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from app.cli import status as module
from app.errors import Refused
from app.local.datadir import DataDir
from app.messaging import redis_faults

URL = "http://127.0.0.1:1"
_DATABASE = {
    "database": "PostgreSQL 18",
    "database_error": None,
    "queued_batches": 0,
    "queued_reversals": 0,
    "oldest_queued_s": None,
    "oldest_snapshot": None,
    "partitions_ahead": 5,
    "webhooks": None,
}
_REDIS = {
    "redis": "valkey 9",
    "redis_error": None,
    "queued_messages": 0,
    "workers": ["worker1@host"],
    "deliveries": ["deliveries@host"],
    "swept_s_ago": 67.0,
    "is_swept": True,
    "beat": False,
}


@pytest.mark.parametrize(
    ("database", "redis", "beat", "oldest"),
    [
        ({}, {}, "does not answer", "–"),
        ({}, {"beat": True}, "answers", "–"),
        ({"database": None, "database_error": "away", "queued_batches": None}, {}, "does not answer", "unknown"),
        ({"queued_batches": 3, "oldest_queued_s": 2.25}, {}, "does not answer", "2.2 s"),
    ],
)
def test_it_says_whether_beat_answers_and_how_old_the_queue_is(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
    database: dict[str, Any],
    redis: dict[str, Any],
    beat: str,
    oldest: str,
) -> None:
    DataDir(tmp_path).write("servers.json", {"postgresql_port": 1, "valkey_port": 1})
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.setenv(name, {"DATABASE_URL": "postgresql://x@y/z", "REDIS_URL": "redis://y"}[name])
    monkeypatch.setattr(module, "_look_at_database", lambda **_: _DATABASE | database)
    monkeypatch.setattr(module, "look_at_redis", lambda: _REDIS | redis)
    done = CliRunner().invoke(module.status, ["--data-dir", str(tmp_path)])
    lines = dict(line.split(":", 1) for line in done.output.splitlines())
    assert lines["Workers"].strip() == "worker1@host (swept 67 s ago)"
    assert lines["Deliveries"].strip() == "deliveries@host (unknown)"
    assert (lines["Beat"].strip(), lines["Oldest queued"].strip()) == (beat, oldest)


@pytest.mark.parametrize(
    ("elsewhere", "noted", "web"),
    [(True, {}, "unknown"), (False, {}, "does not answer"), (True, {"web_url": URL}, f"does not answer  {URL}")],
)
def test_where_nobody_has_noted_the_address_of_web_it_is_not_said_to_be_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, elsewhere: bool, noted: dict[str, str], web: str
) -> None:
    DataDir(tmp_path).write("running.json", noted)
    if not elsewhere:
        monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setattr(module, "_look_at_database", lambda **_: _DATABASE)
    monkeypatch.setattr(module, "look_at_redis", lambda: _REDIS)
    done = CliRunner().invoke(module.status, ["--data-dir", str(tmp_path)])
    lines = dict(line.split(":", 1) for line in done.output.splitlines())
    assert lines["Web"].strip() == web


@pytest.mark.parametrize(
    ("named", "words"),
    [((), "DATABASE_URL and REDIS_URL are not set"), (("REDIS_URL",), "DATABASE_URL is not set")],
)
def test_where_nothing_runs_it_says_what_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: tuple[str, ...], words: str
) -> None:
    for name in {"DATABASE_URL", "REDIS_URL"} - set(named):
        monkeypatch.delenv(name)
    done = CliRunner().invoke(module.status, ["--data-dir", str(tmp_path / "none")])
    assert isinstance(done.exception, Refused)
    assert f"there is no data directory {tmp_path / 'none'}, and {words}." in done.exception.sentence


def test_it_says_how_far_webhooks_are_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    DataDir(tmp_path).write("running.json", {})
    none = {"webhooks": 0, "events": 0, "seconds": 0.0}
    some = {"enabled": {"webhooks": 2, "events": 3, "seconds": 1.25}, "failing": none, "disabled": none}
    disabled = some | {"disabled": {"webhooks": 1, "events": 900, "seconds": 9e5}}
    monkeypatch.setattr(module, "look_at_redis", lambda: _REDIS | {"deliveries": []})
    for webhooks, said in (
        (dict.fromkeys(some, none), "no webhooks"),
        (some, "2 enabled; at most 3 events and 1 s behind"),
        (disabled, "2 enabled, 1 disabled; at most 3 events and 1 s behind"),
    ):
        monkeypatch.setattr(module, "_look_at_database", lambda found=webhooks, **_: _DATABASE | {"webhooks": found})
        done = CliRunner().invoke(module.status, ["--data-dir", str(tmp_path)])
        lines = dict(line.split(":", 1) for line in done.output.splitlines())
        assert lines["Deliveries"].strip() == f"none answers ({said})"
        assert (
            "No worker delivers to webhooks. Read on in docs/operating.md at “A webhook is behind”." in lines["Status"]
        )


def test_workers_that_do_not_answer_are_named_with_the_heading_to_read_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    DataDir(tmp_path).write("running.json", {})
    monkeypatch.setattr(module, "_look_at_database", lambda **_: _DATABASE)
    monkeypatch.setattr(module, "look_at_redis", lambda: _REDIS | {"workers": []})
    done = CliRunner().invoke(module.status, ["--data-dir", str(tmp_path)])
    assert "No worker answers. Read on in docs/operating.md at “Sends answer 202”." in done.output.splitlines()[0]
    assert done.exit_code == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), "has no memory left"),
        (ReadOnlyError("You can't write against a read only replica."), "is a replica"),
        (ResponseError("MISCONF Valkey is configured to save RDB snapshots, but"), "cannot save to its disk"),
        (RedisConnectionError("max number of clients reached"), "takes no more clients"),
        (ResponseError("NOREPLICAS Not enough good replicas to write."), "has too few replicas"),
        (BusyLoadingError("Valkey is loading the dataset in memory"), "is loading its files"),
        (AuthenticationError("invalid username-password pair or user is disabled."), "refuses the password"),
        (NoPermissionError("User points has no permissions to run the 'set' command"), "does not permit its user"),
        (RedisConnectionError("Error 111 connecting to 127.0.0.1:1. Connection refused."), "does not answer"),
    ],
)
def test_the_words_of_a_redis_that_is_away_say_why_and_what_ends_it(error: RedisError, words: str) -> None:
    assert redis_faults.in_words(error).startswith(words)


def test_a_redis_that_refuses_is_named_and_nothing_that_would_answer_through_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    DataDir(tmp_path).write("running.json", {})
    why = redis_faults.in_words(OutOfMemoryError())
    monkeypatch.setattr(module, "_look_at_database", lambda **_: _DATABASE)
    monkeypatch.setattr(module, "look_at_redis", lambda: _REDIS | {"redis_error": why, "workers": [], "deliveries": []})
    done = CliRunner().invoke(module.status, ["--data-dir", str(tmp_path)])
    lines = dict(line.split(":", 1) for line in done.output.splitlines())
    assert f"not well. Redis {why}. Read on in docs/operating.md at “503”." in lines["Status"]
    assert "orker" not in lines["Status"]
    assert lines["Redis"].strip().startswith(f"{why}  redis://")
