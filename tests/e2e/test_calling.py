"""The README and `docs/calling.md` for callers: each block in them that can be run is run, as it stands."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from app.api.openapi.answers import codes
from app.local import ports
from app.platform import keys as platform_keys
from tests.deadline import until
from tests.ports import free_port
from tests.service.inside import Organization, Service

_ROOT = Path(__file__).parents[2]
# What runs a block that it reads from its standard input, and what must be there for that.
_PROGRAMS = {
    "python": ([sys.executable, "-"], None),
    "sh": (["bash", "-euo", "pipefail", "-s"], ["curl", "--version"]),
    "js": (["node", "--input-type=module", "-"], ["node", "-e", "AbortSignal.timeout; fetch"]),
    "php": (["php"], ["php", "-r", "curl_init();"]),
}
# In an answer that is printed, they are other ones each time.
_CHANGING = ("id", "batch_id", "name", "created_at")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _section(path: str, heading: str | None) -> str:
    text = (_ROOT / path).read_text(encoding="utf-8")
    return text if heading is None else text.split(f"## {heading}\n")[1].split("\n## ")[0]


def _blocks(path: str, heading: str | None, *languages: str) -> list[Any]:
    found = [match for match in _BLOCK.findall(_section(path, heading)) if match[0] in languages]
    assert found
    return [
        pytest.param(language, code, id=f"{path}-{number}-{language}")
        for number, (language, code) in enumerate(found, start=1)
    ]


@pytest.fixture
def caller(service: Service) -> Organization:
    made = service.organization(0, sandbox_balance=1_000)
    ada = {"email": "ada@example.com", "first_name": "Ada", "last_name": "Lovelace"}
    assert service.call("POST", "/v1/sandbox/users", key=made.development, json=ada).status_code == 201
    return made


def _run(service: Service, caller: Organization, language: str, code: str) -> str:
    """Run a block with the address and the key of the running service in the place of those that are printed."""
    written = code.replace("http://127.0.0.1:8000", service.url).replace("pts_dev_…", caller.development)
    assert "…" not in written
    done = _done(service.url, caller.development, language, written)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _done(url: str, key: str, language: str, code: str) -> subprocess.CompletedProcess[str]:
    program, needed = _PROGRAMS[language]
    if needed and (
        shutil.which(needed[0]) is None or subprocess.run(needed, capture_output=True, check=False).returncode
    ):
        pytest.skip(f"{needed[0]} is not here, or too old, so this block of the documentation was not run")
    environment = os.environ | {"URL": url, "KEY": key}
    return subprocess.run(
        program, input=code, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


class _Refusing(BaseHTTPRequestHandler):
    """Answers as a proxy that refuses every call, and counts them."""

    calls: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.calls.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(413)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html>Request Entity Too Large</html>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(("language", "code"), _blocks("docs/calling.md", "Never pay twice", "js", "php"))
def test_a_sample_stops_at_a_4xx_whoever_has_answered_it(language: str, code: str) -> None:
    with ThreadingHTTPServer((ports.HOST, 0), _Refusing) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        _Refusing.calls.clear()
        stopped = _done(f"http://{ports.HOST}:{proxy.server_port}", "pts_dev_x", language, code)
        proxy.shutdown()
    assert (stopped.returncode != 0, _Refusing.calls) == (True, ["/v1/points/send"]), stopped.stderr
    assert "413" in stopped.stderr


@pytest.mark.parametrize(
    ("language", "code"),
    [*_blocks("README.md", "A first call", "sh", "python"), *_blocks("docs/calling.md", None, *_PROGRAMS)],
)
def test_a_block_runs_as_it_stands(service: Service, caller: Organization, language: str, code: str) -> None:
    printed = _run(service, caller, language, code)
    is_wrong = "lable" in code  # To show what is answered.
    if language == "sh" and "curl" in code:
        assert json.loads(printed)["success"] is not is_wrong
    if ("/send" in code or "points.send" in code) and not is_wrong and "send_at" not in code:
        assert service.balance(caller.development) < 1_000


def test_a_webhook_on_a_laptop_gets_its_ping(service: Service, caller: Organization) -> None:
    blocks = _BLOCK.findall(_section("docs/events.md", "On a laptop"))
    [receiver] = [code for language, code in blocks if language == "python"]
    [_, register] = [code for language, code in blocks if language == "sh"]
    port = free_port()
    command = [sys.executable, "-c", receiver.replace("9000", str(port))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        try:
            until(lambda: not ports.is_free(port))
            _run(service, caller, "sh", register.replace("9000", str(port)))
            assert program.stdout is not None
            # Before it may come what happened just before, and had no number yet.
            assert "ping\n" in iter(program.stdout.readline, "")
        finally:
            program.terminate()


def test_the_answer_that_is_printed_below_a_call_is_the_one_it_gets(service: Service, caller: Organization) -> None:
    found = _BLOCK.findall(_section("docs/calling.md", None))
    printed = [(found[place - 1], code) for place, (language, code) in enumerate(found) if language == "json"]
    assert len(printed) == 4
    for (language, code), answer in printed:
        assert _unchanging(json.loads(_run(service, caller, language, code))) == _unchanging(json.loads(answer))


def test_the_rehearsals_print_what_the_page_says(service: Service, caller: Organization) -> None:
    found = _BLOCK.findall(_section("docs/rehearsing.md", None))
    assert [language for language, _ in found] == ["sh", "text", "sh", "text", "python", "text"]
    for (language, code), (_, printed) in zip(found[::2], found[1::2], strict=True):
        assert _run(service, caller, language, code) == printed
    assert service.balance(caller.development) == 1_000


def test_the_platform_adopts_it_as_its_page_says(service: Service, caller: Organization) -> None:
    page = _section("docs/adopting.md", None)
    made = re.findall(r'platform-keys create "(.+)" --scope (.+)', page)
    with service.connection() as connection:
        keys = {name: platform_keys.create(connection, name, scopes.split(" --scope "))[1] for name, scopes in made}
    # Each section's program calls with the key that the page makes for it.
    of_others = {"Who did what": "Records", "Other services": "Newsletter", "Erase a user": "Support"}
    printed = [
        _run(service, caller, language, code.replace("pts_platform_…", keys[of_others.get(heading, heading)]))
        for heading, text in re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.MULTILINE)
        for language, code in _BLOCK.findall(text)
        if language == "python"
    ]
    sign_up, bulk, app, made_of, billing, who_did_what, support, _followed, erased = printed
    assert re.fullmatch(r"[1-9][0-9]* 0\n", sign_up)
    assert re.fullmatch(r"created \nconflict \{'users.1.email': \[.* has no @-sign.'\]\}\n", bulk)
    assert app == "Your points: 0\n"
    assert made_of == ""
    assert re.fullmatch(r"1000\nhttp://\S+/console/link/\S+\n", billing)
    assert " user.registered " in who_did_what
    assert support == "mary.jackson@example.com 0\n"
    assert re.fullmatch(r"erased-[1-9][0-9]* 0\n", erased)


def _unchanging(value: Any) -> Any:
    if isinstance(value, list):
        return [_unchanging(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: type(each) if name in _CHANGING else _unchanging(each) for name, each in value.items()}


def test_the_table_of_a_transaction_names_its_fields(service: Service, caller: Organization) -> None:
    answer = service.send(caller.development, {"recipient": "ada@example.com", "amount": 1}).json()
    table = _section("docs/calling.md", "Ask, then send").split("| field of a transaction |")[1].split("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(answer["data"]["transactions"][0])


def test_the_table_of_answers_names_every_code() -> None:
    table = _section("docs/calling.md", "What to do with each answer")
    named = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines() if row.startswith("|"))))
    assert named == set(codes()) - {"not_ready"}  # That of /readyz, which no caller asks.


def test_the_python_of_the_page_reports_what_became_of_each_recipient(service: Service, caller: Organization) -> None:
    [block, _] = _blocks("docs/calling.md", None, "python")
    assert _run(service, caller, *block.values) == "2 recipients, 0 unpaid, 1 held\n"
    assert service.balance(caller.development) == 900
