"""The second factor of a person: a code of an app (TOTP, 30 seconds each) or a recovery code. Each is good once.

The members of a person who have the same password share one factor. Its secret is stored encrypted.
"""

import base64
import hmac
import secrets
from collections.abc import Iterable

import pyotp
from sqlalchemy import Connection, text

from app.actions import log as actions
from app.encryption import SecretsKeyMissing, SecretUnreadable, decrypted, encrypted, reencrypted
from app.errors import Refused
from app.members.members import Member, drop_second_factor, record
from app.values.key_hashes import hash_token

RECOVERY_CODES = 10

new_secret = pyotp.random_base32


def uri_of(secret: str, member: Member, organization_name: str) -> str:
    """Return what an app reads to make the codes of a secret."""
    return pyotp.TOTP(secret).provisioning_uri(name=member.email, issuer_name=f"Points {organization_name}")


def turn_on(connection: Connection, member: Member, secret: str, code: str, *, also: Iterable[int]) -> list[str] | None:
    """Give a locked member a factor, and those of the person's other members that have none; return recovery codes.

    None: the code is not one of this secret.

    Raises:
        Refused: they have one already.
    """
    now: int = connection.execute(_STEP).scalar_one()
    step = _step_of(secret, code, now)
    if step is None:
        return None
    codes = [base64.b32encode(secrets.token_bytes(10)).decode().lower() for _ in range(RECOVERY_CODES)]
    made = {"secret": encrypted(secret), "step": step, "hashes": [hash_token(each) for each in codes]}
    factor_id = connection.execute(_MAKE, made).scalar_one()
    if not connection.execute(_GIVE, {"factor_id": factor_id, "ids": [member.id, *also]}).rowcount:
        raise Refused("There is a second factor already.")
    record(connection, actions.SECOND_FACTOR_ON, member, by=member.id)
    return ["-".join(each[start : start + 4] for start in range(0, len(each), 4)) for each in codes]


_NOW_STEP = "CAST(floor(extract(epoch FROM clock_timestamp()) / 30) AS bigint)"
_STEP = text(f"SELECT {_NOW_STEP}")
_MAKE = text("""
    INSERT INTO second_factors (secret, used_step, recovery_hashes) VALUES (:secret, :step, :hashes) RETURNING id
""")
_GIVE = text("UPDATE members SET second_factor_id = :factor_id WHERE id = ANY(:ids) AND second_factor_id IS NULL")


def use_code(connection: Connection, factor_id: int, code: str) -> bool:
    """Tell whether a code is good, and use it up. Of two who give it at once, it is good for one.

    Raises:
        SecretsKeyMissing: no key of the service decrypts the secret; a recovery code is good all the same.
    """
    factor = connection.execute(_LOCK, {"id": factor_id}).one_or_none()
    if factor is None:
        return False
    written = code.replace("-", "").replace(" ", "").lower()
    if (found := hash_token(written)) in map(bytes, factor.recovery_hashes):
        connection.execute(_USE_RECOVERY, {"id": factor_id, "hash": found})
        return True
    try:
        step = _step_of(decrypted(factor.secret), written, factor.step)
    except SecretUnreadable:
        raise SecretsKeyMissing from None
    if step is None or step <= factor.used_step:
        return False
    connection.execute(_USE_STEP, {"id": factor_id, "step": step})
    return True


_LOCK = text(f"""
    SELECT secret, used_step, recovery_hashes, {_NOW_STEP} AS step FROM second_factors
    WHERE id = :id FOR NO KEY UPDATE
""")
_USE_RECOVERY = text("UPDATE second_factors SET recovery_hashes = array_remove(recovery_hashes, :hash) WHERE id = :id")
_USE_STEP = text("UPDATE second_factors SET used_step = :step WHERE id = :id")


def _step_of(secret: str, code: str, now: int) -> int | None:
    """Return the time step whose code this is: that of now, or the one before or after it, as clocks differ."""
    right = {step: pyotp.TOTP(secret).generate_otp(step) for step in (now - 1, now, now + 1)}
    return next((step for step in right if hmac.compare_digest(right[step].encode(), code.encode())), None)


def recovery_codes_left(connection: Connection, member: Member) -> int:
    """Return how many recovery codes a member with a factor has left."""
    left: int = connection.execute(_LEFT, {"id": member.id}).scalar_one()
    return left


_LEFT = text("""
    SELECT cardinality(f.recovery_hashes) FROM members m JOIN second_factors f ON f.id = m.second_factor_id
    WHERE m.id = :id
""")


def turn_off(connection: Connection, member: Member, code: str) -> bool:
    """Take the factor off all members who share it with this locked one, who gives a good code; tell whether it is."""
    factor_id = connection.execute(_OWN, {"id": member.id}).scalar_one()
    if factor_id is None or not use_code(connection, factor_id, code):
        return False
    return take_off(connection, member, by=member.id, everywhere=True)


_OWN = text("SELECT second_factor_id FROM members WHERE id = :id")


def take_off(connection: Connection, member: Member, *, by: int | None, everywhere: bool) -> bool:
    """Take the factor off a locked member, or `everywhere` off all who share it; tell whether there was one.

    An admin takes it off in the own organization alone: at the person's others it is not theirs to lift.
    """
    if not drop_second_factor(connection, member.id, everywhere=everywhere):
        return False
    record(connection, actions.SECOND_FACTOR_OFF, member, by=by)
    return True


def reencrypt_all(connection: Connection) -> int:
    """Encrypt the secrets of all factors again, with the newest key; return how many there are.

    Raises:
        SecretsKeyMissing: there is no key.
        Refused: no key decrypts a secret.
    """
    rows = connection.execute(_ALL_SECRETS).all()
    for factor_id, secret in rows:
        again = reencrypted(secret, f"second factor {factor_id}")
        connection.execute(_STORE_SECRET, {"id": factor_id, "secret": again})
    return len(rows)


_ALL_SECRETS = text("SELECT id, secret FROM second_factors ORDER BY id FOR NO KEY UPDATE")
_STORE_SECRET = text("UPDATE second_factors SET secret = :secret WHERE id = :id")
