"""A real SMTP server on the loopback address: it keeps the mail that comes, and is slow, refuses or dies as told."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP

from tests.ports import HOST, free_port


class _Server(SMTP):
    """Ends the connection after each mail whose answer is empty, as a server does that dies."""

    async def push(self, status: Any) -> None:
        if status:
            await super().push(status)
        elif self.transport is not None:
            self.transport.close()


class _Controller(Controller):
    def factory(self) -> SMTP:
        return _Server(self.handler, **self.SMTP_kwargs)


@dataclass
class PostOffice:
    """`answers` are given to the next mails, in order; then each is taken. An empty answer ends the connection.

    It answers `slow_s` after it has kept a mail. `options` are those of aiosmtpd, for TLS and passwords.
    """

    port: int = field(default_factory=free_port)
    answers: list[str] = field(default_factory=list)
    slow_s: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    mails: list[EmailMessage] = field(default_factory=list)

    async def handle_DATA(self, _server: SMTP, _session: object, envelope: Any) -> str:  # noqa: N802
        answer = self.answers.pop(0) if self.answers else "250 OK"
        if not answer or answer.startswith("250"):
            mail = message_from_bytes(envelope.content, policy=default)
            assert envelope.rcpt_tos == [mail["To"]], "a mail is for one"
            self.mails.append(mail)
        await asyncio.sleep(self.slow_s)
        return answer

    @property
    def url(self) -> str:
        return f"smtp://{HOST}:{self.port}"

    def taken(self) -> list[tuple[str, str]]:
        """Return to whom the mails went that came since the last look, and their subjects; in alphabetical order."""
        mails, self.mails = self.mails, []
        return sorted((mail["To"], mail["Subject"]) for mail in mails)

    @contextmanager
    def open(self) -> Iterator["PostOffice"]:
        controller = _Controller(self, hostname=HOST, port=self.port, **self.options)
        controller.start()
        try:
            yield self
        finally:
            controller.stop()
