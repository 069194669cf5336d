"""The log: the form of its lines, and what never gets into one."""

import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from app import logs
from tests.pace import in_time

ROOT = Path(__file__).parents[2]
_EVENT = re.compile(r"_log\.\w+\(\s*\"(\w+)\"|_log\.info\)\(\s*\"(\w+)\"|\"event\": \"(\w+)\"")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collect the lines that this process would write, its libraries included; put its log back afterwards."""
    lines: list[str] = []
    monkeypatch.setattr("os.write", lambda _to, line: lines.append(line.decode()))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield lines
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def last(written: list[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(written[-1])
    return document


def test_what_libraries_say_is_told_with_addresses_and_keys_masked(written: list[str]) -> None:
    logs.configure("web", log_format="json")
    said = "Error handling request /v1/transactions?email=%s, key %s, also %s"
    logging.getLogger("gunicorn.error").error(said, "ada%40example.com", "pts_live_abcDEF123", "ada.l+x@example.com")
    line = last(written)
    assert (line["event"], line["logger"], line["level"]) == ("message", "gunicorn.error", "error")
    assert line["message"] == "Error handling request /v1/transactions?email=***, key ***, also ***"


@pytest.mark.parametrize(
    "address",
    [
        "o'brien@example.com",
        "a/b@example.com",
        "{ada}@example.com",
        "ada%40example%2Ecom",
        "a=b;c@example.com",
        "'ada@b.de'",
    ],
)
def test_no_part_of_an_unusual_address_is_left(address: str, written: list[str]) -> None:
    logs.configure("web", log_format="json")
    logging.getLogger("some.library").error("told of %s, twice", address)
    assert last(written)["message"].replace("'", "") == "told of ***, twice"


@pytest.mark.alone
def test_a_long_line_of_at_signs_and_dots_is_masked_in_no_time(written: list[str]) -> None:
    logs.configure("web", log_format="json")
    began = time.process_time()
    logging.getLogger("gunicorn.error").error("Error handling request /%s", "@.-" * 20_000)
    assert in_time(time.process_time() - began, 1, "process_time")
    assert last(written)["message"].startswith("Error handling request /@.-")
    logging.getLogger("gunicorn.error").error("Error handling request /%s", "@.-" * 20_000 + "x")
    assert last(written)["message"] == "Error handling request ***"


def test_of_an_exception_its_kind_and_place_are_told_and_never_its_text(written: list[str]) -> None:
    logs.configure("worker", log_format="json")
    try:
        raise IntegrityError("INSERT", {}, ValueError("Key (email_key)=(ada@example.com) already exists"))
    except IntegrityError:
        logging.getLogger("gunicorn.error").exception("Error")
    line = last(written)
    assert line["error"] == "ValueError"
    assert line["places"][-1].startswith(__file__)
    assert "ada" not in written[-1]


def test_every_event_is_described_and_every_description_has_its_event() -> None:
    logged = {
        next(filter(None, names))
        for folder in ("app", "worker")
        for file in (ROOT / folder).rglob("*.py")
        for names in _EVENT.findall(file.read_text())
        if "_log" in file.read_text() or file.name == "logs.py"
    }
    section = (ROOT / "docs" / "observing.md").read_text().partition("| event | level |")[2].partition("\n\n")[0]
    described = {name for row in section.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert described == logged
