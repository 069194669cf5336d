"""The secrets that sign webhooks: made here, and stored encrypted.

`POINTS_SECRETS_KEY` holds the keys, the newest first. The newest encrypts, and all of them decrypt.
"""

import base64
import secrets

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy import Connection

from app.actions import log as actions
from app.errors import Refused
from app.settings import settings
from app.webhooks.errors import SecretsKeyMissing
from app.webhooks.webhooks import all_secrets, store_secrets

_SECRET_BYTES = 32


class SecretUnreadable(Exception):
    """No key of `POINTS_SECRETS_KEY` decrypts a secret."""


def new_secret() -> str:
    """Return a secret in the form of Standard Webhooks: `whsec_` and 256 random bits in base64."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"


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


def reencrypted(text: str) -> str:
    """Encrypt a secret again, with the newest key.

    Raises:
        SecretsKeyMissing, SecretUnreadable: as above.
    """
    try:
        return _keys().rotate(text).decode()
    except InvalidToken:
        raise SecretUnreadable from None


def reencrypt_all(connection: Connection) -> int:
    """Encrypt the secrets of all webhooks again, with the newest key; return how many webhooks there are.

    Raises:
        SecretsKeyMissing: there is no key.
        Refused: no key decrypts a secret.
    """
    found = all_secrets(connection)
    for webhook_id, secret, previous in found:
        try:
            store_secrets(
                connection, webhook_id, secret=reencrypted(secret), previous=previous and reencrypted(previous)
            )
        except SecretUnreadable:
            raise Refused(
                f"No key of POINTS_SECRETS_KEY decrypts the secret of webhook {webhook_id}; nothing was changed."
            ) from None
    actions.record(connection, actions.SECRETS_REENCRYPTED, detail=str(len(found)))
    return len(found)


def _keys() -> MultiFernet:
    if not (keys := settings().secrets_key):
        raise SecretsKeyMissing
    return MultiFernet([Fernet(key) for key in keys])
