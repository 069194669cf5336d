"""What nobody else may read is stored encrypted: the secrets that sign webhooks, kept answers, links to be sent.

`POINTS_SECRETS_KEY` holds the keys, the newest first. The newest encrypts, and all of them decrypt.
"""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from app.errors import PointsError, Refused
from app.settings import settings


class SecretsKeyMissing(PointsError):
    """The database is out of reach, or the operator has set no key to encrypt secrets with."""

    status = 503
    field = "service"
    says = "This service has no key to encrypt what it must keep secret: its operator must set POINTS_SECRETS_KEY."


class SecretUnreadable(Exception):
    """No key of `POINTS_SECRETS_KEY` decrypts a secret."""


def require_key() -> None:
    """Require that secrets can be stored.

    Raises:
        SecretsKeyMissing: there is no key.
    """
    _keys()


def encrypted(secret: str) -> str:
    """Encrypt a secret.

    Raises:
        SecretsKeyMissing: there is no key.
    """
    return _keys().encrypt(secret.encode()).decode()


def decrypted(text: str) -> str:
    """Decrypt a secret.

    Raises:
        SecretsKeyMissing: there is no key.
        SecretUnreadable: it was encrypted with another key.
    """
    try:
        return _keys().decrypt(text).decode()
    except InvalidToken:
        raise SecretUnreadable from None


def reencrypted(text: str, whose: str) -> str:
    """Encrypt a secret again, with the newest key; `whose` names it in the sentence of an error.

    Raises:
        SecretsKeyMissing: there is no key.
        Refused: no key decrypts it.
    """
    try:
        return _keys().rotate(text).decode()
    except InvalidToken:
        raise Refused(f"No key of POINTS_SECRETS_KEY decrypts {whose}; nothing was changed.") from None


def _keys() -> MultiFernet:
    if not (keys := settings().secrets_key):
        raise SecretsKeyMissing
    return MultiFernet([Fernet(key) for key in keys])
