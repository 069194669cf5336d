"""Who follows docs/installing.md on a host of Debian, with a systemd of its own, finds that each command works."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.deadline import TIMEOUT_S, comes_true
from tests.operations.senders import beside, sending
from tests.service import debian
from tests.service.release import VERSION, succeeds
from tests.unit.deployment.files import ROOT

_PAGE = (ROOT / "docs" / "installing.md").read_text().replace("1.0.0", VERSION)
_STARTED = ("postgresql", "redis-server", "nginx")
_EXPOSURE_MAX = 4.0
# What Prometheus looks at, and that it answers.
_TARGETS = dict.fromkeys(("points", "points-flower", "points-host", "points-tls"), "1")

# It writes which alerts come, until its input ends.
_RECEIVER = """
import http.server, json, os, sys, threading

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        for alert in json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"]:
            os.write(1, f"{self.path} {alert['status']} {alert['labels']['alertname']}\\n".encode())
        self.send_response(200)
        self.end_headers()

server = http.server.HTTPServer(("127.0.0.1", 9095), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
"""


def _commands(heading: str) -> list[str]:
    """Return the commands below a heading of the page, each with the lines that belong to it."""
    section = re.split(r"^## ", _PAGE, flags=re.M)
    [told] = [part for part in section if part.startswith(f"{heading}\n")]
    blocks = re.findall(r"```console\n(.*?)```", told, flags=re.S)
    return [command.strip("\n") for block in blocks for command in re.split(r"^\$ ", block, flags=re.M)[1:]]


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(debian.lacks() is not None, reason=f"no host of Debian was installed: {debian.lacks()}")
def test_each_command_of_the_page_works_in_its_order(released: Path, tmp_path: Path) -> None:
    with debian.host(tmp_path, _STARTED) as host:
        _bring(released, host.root)
        host.do("export PIP_NO_INDEX=1 PIP_FIND_LINKS=/var/wheels")
        for heading in ("PostgreSQL, Redis and nginx", "The service", "TLS", "A backup, and a restore"):
            printed = [host.do(command) for command in _commands(heading)]
            if heading == "TLS":
                assert json.loads(printed[-1])["data"]["transactions"][0]["debited"] is True
        for part in ("web", "worker@1", "deliveries@1", "beat", "flower"):
            told = host.do(f"systemd-analyze security --no-pager points-{part}.service")
            assert float(re.findall(r"exposure level for \S+: ([\d.]+)", told)[0]) <= _EXPOSURE_MAX, told
        with beside(host.in_its_network(), "-c", _RECEIVER) as alerts:
            for command in _commands("Alerts"):
                host.do(command)
            assert comes_true(lambda: alerts["/page firing PointsWebDown"] > 0, within_s=TIMEOUT_S), alerts
        assert comes_true(lambda: _targets(host) == _TARGETS, within_s=TIMEOUT_S), _targets(host)
        with sending(host.in_its_network(), host.do("echo $KEY").strip(), "https://127.0.0.1") as senders:
            for command in _commands("An upgrade"):
                host.do(command)
                senders.goes_on()
        assert set(senders.answers) == {"201"}, senders.answers
        shown = json.loads(host.do("points organizations show 1 --json"))
        assert shown["balance"] == 100_000 - 50 - senders.answers["201"]
        assert json.loads(host.do("points audit --json"))["balanced"] is True


def _bring(released: Path, root: Path) -> None:
    """Put the release where the page has it, and what pip would fetch where it finds it offline."""
    shutil.copytree(released, root / "root" / f"points-{VERSION}")
    # The host's Python may be another than ours, and need other packages.
    pip = [sys.executable, "-m", "pip", "--python", "/usr/bin/python3", "download", "--quiet", "--require-hashes"]
    succeeds(*pip, "--requirement", "requirements.txt", "--dest", root / "var" / "wheels", cwd=released)


def _targets(host: debian.Host) -> dict[str, str]:
    found = json.loads(host.do("curl --fail --silent '127.0.0.1:9090/api/v1/query?query=up'"))
    return {target["metric"]["job"]: target["value"][1] for target in found["data"]["result"]}
