"""nginx in front of web, with the configuration that an operator is given: TLS, and requests that are read whole."""

import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.local import ports
from tests.operations.beside import beside
from tests.ports import free_port
from tests.service.inside import Service
from tests.unit.deployment.files import ROOT

_PATH = f"{os.environ['PATH']}:/usr/sbin"
_NGINX, _OPENSSL = shutil.which("nginx", path=_PATH), shutil.which("openssl")
_NAME = "points.example.com"
_TOO_LARGE = 8 * 1024 * 1024 + 1

# What Debian's own nginx.conf is, as far as it matters here: it includes ours.
_AROUND = """\
{user}
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/unused; uwsgi_temp_path {folder}/unused; scgi_temp_path {folder}/unused;
    include {folder}/points.conf;
}}
"""


@contextlib.contextmanager
def _nginx(folder: Path, *, web_port: int) -> Iterator[int]:
    """Run nginx with the operator's configuration, but for addresses and a certificate of our own; give its port."""
    if _NGINX is None or _OPENSSL is None:
        pytest.skip("nginx or openssl is not installed (Debian: apt-get install nginx openssl)")
    port, certificate, key = free_port(), folder / "fullchain.pem", folder / "key.pem"
    made = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={_NAME}")
    names = ("-addext", f"subjectAltName=DNS:{_NAME}", "-keyout", str(key), "-out", str(certificate))
    subprocess.run([_OPENSSL, *made, *names], check=True, capture_output=True)
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    for given, here in (
        ("127.0.0.1:8000", f"{ports.HOST}:{web_port}"),
        ("listen 443", f"listen {ports.HOST}:{port}"),
        ("/etc/ssl/points", str(folder)),
    ):
        assert given in text
        text = text.replace(given, here)
    (folder / "points.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_AROUND.format(folder=folder, user=user))
    command = [_NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "nginx.log")]
    with beside([*command, "-g", "daemon off;"], folder, port):
        yield port


@pytest.mark.long
def test_a_call_through_nginx_is_encrypted_and_answered_as_web_answers_it(tmp_path: Path, service: Service) -> None:
    key = service.organization(1_000_000).live
    with _nginx(tmp_path, web_port=service.port) as port:
        context = ssl.create_default_context(cafile=tmp_path / "fullchain.pem")
        headers = {"Authorization": f"Bearer {key}", "Host": _NAME, "Content-Type": "application/json"}
        url, reached = f"https://{ports.HOST}:{port}", {"sni_hostname": _NAME}
        with httpx.Client(base_url=url, verify=context, headers=headers, timeout=60) as caller:

            def send(body: bytes) -> httpx.Response:
                return caller.post("/v1/points/send", content=body, extensions=reached)

            recipients = [f"{number}@example.com" for number in range(10_000)]
            sent = send(json.dumps({"recipients": recipients, "amount": 1}).encode())
            assert sent.status_code == 201, sent.text
            assert [one["email"] for one in sent.json()["data"]["transactions"]] == recipients
            bad = send(b"{}")
            told = bad.headers["Via"], bad.headers["Transfer-Encoding"]
            assert (bad.status_code, *told) == (400, "1.1 points", "chunked")
            large = send(b" " * _TOO_LARGE)
            assert (large.status_code, large.json()["success"]) == (413, False)
            assert caller.get("/metrics", extensions=reached).status_code == 404


def test_what_nginx_answers_itself_is_in_the_envelope_for_programs_and_a_page_for_people(tmp_path: Path) -> None:
    with _nginx(tmp_path, web_port=free_port()) as port, httpx.Client(verify=False, timeout=60) as caller:  # noqa: S501
        url, long = f"https://{ports.HOST}:{port}", b" " * (9 * 1024 * 1024 + 1)
        for method, path, status, code, more in (
            ("GET", "/metrics", 404, "not_found", {}),
            ("POST", "/v1/points/send", 413, "body_too_large", {"content": long}),
            ("POST", "/v1/points/send", 502, "out_of_reach", {"json": {}}),
            ("GET", "/v1/organization", 502, "out_of_reach", {"headers": {"X-Request-Id": "mine-1"}}),
            ("GET", "/v1/organization", 400, None, {"headers": {"X-Long": "x" * 40_000}}),
            ("GET", "/" + "x" * 40_000, 414, None, {}),
        ):
            answer = caller.request(method, f"{url}{path}", **more)
            assert answer.status_code == status, path
            document, headers = answer.json(), answer.headers
            assert list(document) == ["success", "data", "errors", "additional_data"]
            assert (document["success"], document["data"]) == (False, None)
            assert all(isinstance(sentence, str) for [sentence] in document["errors"].values())
            assert document["additional_data"] == (None if code is None else {"code": code})
            told = ("Content-Type", "Cache-Control", "Vary", "Via", "Server")
            assert [headers[name] for name in told] == [
                *("application/json", "no-store, private", "Accept, Authorization", "1.1 points", "nginx")
            ]
            assert ("Retry-After" in headers) == (status >= 500)
            assert headers["X-Request-Id"] == "mine-1" or re.fullmatch("[0-9a-f]{32}", headers["X-Request-Id"])
        assert caller.get(f"{url}/console/sign-in").headers["Content-Type"] == "text/html"


def test_web_hears_nothing_of_a_request_until_nginx_has_all_of_it(tmp_path: Path) -> None:
    body = b'{"recipients": ["ada@example.com"], "amount": 1}'
    head = f"POST /v1/points/send HTTP/1.1\r\nHost: {_NAME}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_server((ports.HOST, 0)) as web, _nginx(tmp_path, web_port=web.getsockname()[1]) as port:
        web.settimeout(60)
        context = ssl.create_default_context(cafile=tmp_path / "fullchain.pem")
        plain = [socket.create_connection((ports.HOST, port), timeout=60) for _ in range(2)]
        slow, quick = (context.wrap_socket(one, server_hostname=_NAME) for one in plain)
        with slow, quick:
            slow.sendall(head + body[:-1])
            quick.sendall(f"GET /healthz HTTP/1.1\r\nHost: {_NAME}\r\n\r\n".encode())
            first, _ = web.accept()
            with first:
                assert first.recv(65_536).startswith(b"GET /healthz")
                slow.sendall(body[-1:])
                second, _ = web.accept()
                with second:
                    second.settimeout(60)
                    heard = b""
                    while not heard.endswith(body):
                        heard += second.recv(65_536)
                    assert re.match(rb"POST /v1/points/send HTTP/1\.1\r\n", heard)
