"""The SMTP server that takes the mail, or the log in its place."""

import smtplib
import ssl
from contextlib import suppress
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, localtime, parseaddr
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from app import logs
from app.errors import SettingsError
from app.mail.texts import Mail
from app.settings import settings
from app.values.addresses import parse, spellings

# For each answer of the server.
_TIMEOUT_S = 15.0
_SUBMISSION_PORT = 587
_LINE_MAX = 998  # RFC 5322, 2.1.1: so no link is broken in two.

_log = logs.logger()


def require_public_url() -> None:
    """Require that links can be made.

    Raises:
        SettingsError: nobody has said where people reach the console.
    """
    if settings().has_mail and settings().public_url is None:
        raise SettingsError("The setting POINTS_PUBLIC_URL is missing: links in mail begin with it.")


class Server:
    """A connection to the SMTP server, made for the first mail and kept for those that follow."""

    def __init__(self) -> None:
        self._connection: smtplib.SMTP | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._connection is not None:
            with suppress(smtplib.SMTPException, OSError):
                self._connection.quit()

    def send(self, mail: Mail, name: str) -> None:
        """Hand a mail to the server; one that is sent twice has the same `name`.

        Raises:
            smtplib.SMTPException, OSError: the server does not take it, or is out of reach.
        """
        if not settings().sends_mail:
            _print(mail)
            return
        if self._connection is None:
            self._connection = _connect(settings().smtp_url or "")
        self._connection.send_message(_message(mail, name))


def why(error: Exception) -> str:
    """Return why a mail was not sent, without the server's words: they may repeat an address."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"SMTP {min(code for code, _ in error.recipients.values())}"
    return f"SMTP {error.smtp_code}" if isinstance(error, smtplib.SMTPResponseException) else type(error).__name__


def _print(mail: Mail) -> None:
    """Print a mail to the log, without the member's address and without what opens a door."""
    said = mail.text if mail.secret is None else mail.text.replace(mail.secret, "***")
    _log.info("mail_printed", member_id=mail.member_id, subject=mail.subject, text=said)


def _connect(url: str) -> smtplib.SMTP:
    parts = urlsplit(url)
    host, tls = parts.hostname or "", ssl.create_default_context()
    connection: smtplib.SMTP
    if parts.scheme == "smtps":
        connection = smtplib.SMTP_SSL(host, parts.port or 0, timeout=_TIMEOUT_S, context=tls)
    else:
        usual_port = _SUBMISSION_PORT if parts.query else smtplib.SMTP_PORT
        connection = smtplib.SMTP(host, parts.port or usual_port, timeout=_TIMEOUT_S)
    try:
        if parts.query:
            connection.starttls(context=tls)
        if parts.username:
            connection.login(unquote(parts.username), unquote(parts.password or ""))
    except BaseException:
        connection.close()
        raise
    return connection


def _message(mail: Mail, name: str) -> EmailMessage:
    sender = settings().mail_from or ""
    message = EmailMessage(policy=SMTP.clone(max_line_length=_LINE_MAX))
    message["From"], message["To"], message["Subject"] = sender, _written(mail.to), mail.subject
    message["Date"] = format_datetime(localtime())
    message["Message-ID"] = f"<{name}@{parseaddr(sender)[1].rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    return message


def _written(address: str) -> str:
    """Return an address as most servers know it: its domain in ASCII."""
    return address if address.isascii() else spellings(parse(address).key)[-1]
