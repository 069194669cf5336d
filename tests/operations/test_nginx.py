"""nginx in front of web, with the configuration that an operator is given: TLS, and requests that are read whole."""

import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.local import ports
from tests.deadline import comes_true
from tests.ports import free_port
from tests.service.deployment import STARTED_IN_S
from tests.service.inside import Service
from tests.service.parts import Part
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
    part = Part("nginx", [*command, "-g", "daemon off;"], os.environ, folder / "output")
    part.start()
    try:
        assert comes_true(lambda: not ports.is_free(port), within_s=STARTED_IN_S), (folder / "output").read_text()
        yield port
    finally:
        part.hold_down(signal.SIGTERM)


@contextlib.contextmanager
def _connection(folder: Path, port: int) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cafile=folder / "fullchain.pem")
    plain = socket.create_connection((ports.HOST, port), timeout=60)
    with context.wrap_socket(plain, server_hostname=_NAME) as encrypted:
        yield encrypted


def test_a_call_through_nginx_is_encrypted_and_answered_as_web_answers_it(tmp_path: Path, service: Service) -> None:
    key = service.organization(1_000_000).live
    with _nginx(tmp_path, web_port=service.port) as port:
        context = ssl.create_default_context(cafile=tmp_path / "fullchain.pem")
        headers = {"Authorization": f"Bearer {key}", "Host": _NAME}
        reached = {"sni_hostname": _NAME}
        with httpx.Client(
            base_url=f"https://{ports.HOST}:{port}", verify=context, headers=headers, timeout=60
        ) as caller:

            def post(path: str, **request: object) -> httpx.Response:
                return caller.post(path, extensions=reached, **request)  # type: ignore[arg-type]

            recipients = [f"{number}@example.com" for number in range(10_000)]
            sent = post("/v1/points/send", json={"recipients": recipients, "amount": 1})
            assert sent.status_code == 201, sent.text
            assert [one["email"] for one in sent.json()["data"]["transactions"]] == recipients
            bad = post("/v1/points/send", json={"amount": 1})
            assert bad.status_code == 400
            assert bad.headers["Via"] == "1.1 points"
            assert bad.headers["Transfer-Encoding"] == "chunked"
            large = post("/v1/points/send", content=b" " * _TOO_LARGE, headers={"Content-Type": "application/json"})
            assert large.status_code == 413
            assert large.json()["success"] is False
            assert caller.get("/metrics", extensions=reached).status_code == 404


def test_web_hears_nothing_of_a_request_until_nginx_has_all_of_it(tmp_path: Path) -> None:
    body = b'{"recipients": ["ada@example.com"], "amount": 1}'
    head = f"POST /v1/points/send HTTP/1.1\r\nHost: {_NAME}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_server((ports.HOST, 0)) as web, _nginx(tmp_path, web_port=web.getsockname()[1]) as port:
        web.settimeout(60)
        with _connection(tmp_path, port) as slow, _connection(tmp_path, port) as quick:
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
