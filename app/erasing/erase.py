"""Erasing a user: the row and the events in one transaction, then batches, lists and statistics in many bounded ones.

The first transaction decides: from its commit on, the user has no name, and whatever is sent to the address finds no
account. Its addresses stay in `former_addresses` until the rest is done. So an erasure that was killed goes on when it
is requested again, and the audit knows meanwhile whose the transactions are.
"""

from sqlalchemy import Connection, text

from app import users
from app.actions import log as actions
from app.erasing import issued, lists, statistics
from app.errors import PointsError
from app.events import event_types, log
from app.events.sequencer import DIGESTED
from app.ledger.claim import claim_all
from app.ledger.held_list import exclude_reversals, holders_of
from app.postgres.database import digest, row_with_id, single_statement, transaction
from app.postgres.locks import outlast_writers
from app.scope import Author
from app.users import RegisteredUser

_HAVE_ADDRESSES = ("batches", "transactions", "uploads", "upload_parts")


class ErasureUnfinished(PointsError):
    """The user is erased, but a copy of the address may be left."""

    status = 503
    field = "user"
    says = "The user is erased, but something that began before still runs and may write the address. Call again."


def erase_user(user_id: int, *, by: Author | None = None) -> RegisteredUser:
    """Erase a live user, and return what is left of it: its id, its balance, and `erased-<id>` for its names.

    It commits by itself, several times. Again, it goes on where it was interrupted; of an erased user nothing changes.

    Raises:
        NotFound: there is no such user.
        ErasureUnfinished: what began before still runs; ask again.
    """
    is_finished = None
    while is_finished is None:
        with transaction(by=by) as connection:
            is_finished = _begin(connection, user_id)
    if not is_finished:
        with single_statement() as connection:
            # What began before, an issue among it, may have seen the user, and may yet write the address.
            if not outlast_writers(connection, _HAVE_ADDRESSES):
                raise ErasureUnfinished
        issued.erase(user_id)
        with transaction() as connection:
            keys = list(connection.execute(_FORMER, {"id": user_id}).scalars())
        lists.erase(user_id, keys)
        statistics.forget(keys)
        with transaction() as connection:
            connection.execute(_FORGET_ADDRESSES, {"id": user_id})
    with transaction() as connection:
        return users.get_by_id(connection, user_id)


def _begin(connection: Connection, user_id: int) -> bool | None:
    """Take the name and the address off the user's row and its events; return whether nothing else has them.

    None if the address was changed while this waited: others may hold points for the new address.
    """
    address = row_with_id(connection, _ADDRESS, {"id": user_id}, "user").email_key
    holders = [] if address is None else holders_of(connection, [address])
    exclude_reversals(connection, holders)
    user = row_with_id(connection, _LOCK, {"id": user_id}, "user")
    if user.erased_at is None:
        if user.email_key != address:
            return None
        # Points that an issue left held, because it crossed the registration, are the user's.
        claim_all(connection, [user_id], holders)
        keys = list(connection.execute(_KEYS, {"id": user_id}).scalars())
        of_sandboxes = list(connection.execute(_OF_SANDBOXES, {"keys": keys}).scalars())
        connection.execute(_FORGET_OWN, {"id": user_id, "keys": keys})
        connection.execute(_KEEP, {"id": user_id, "keys": keys, "of_sandboxes": of_sandboxes})
        ids = [user_id, *of_sandboxes]
        connection.execute(_TAKE_NAMES, {"ids": ids})
        # The sequencer moves events from the first table to the second, so look there later.
        for statement in (_ERASE_UNNUMBERED, _ERASE_NUMBERED):
            connection.execute(statement, {"ids": ids})
        log.write_of_user(connection, event_types.USER_ERASED, user_id)
        actions.record(connection, actions.USER_ERASED, subject_id=user_id)
    return not connection.execute(_HAS_ADDRESSES, {"id": user_id}).scalar_one()


_ADDRESS = text("SELECT email_key FROM users WHERE id = :id AND sandbox_of IS NULL")
_LOCK = text("SELECT erased_at, email_key FROM users WHERE id = :id AND sandbox_of IS NULL FOR NO KEY UPDATE")
# The addresses that stand for the user alone, up to now: the present one, and of those before what no other live user
# has since. Of the others only what the user was sent is erased.
_KEYS = text("""
    SELECT email_key FROM users WHERE id = :id
    UNION
    SELECT email_key FROM former_addresses f
    WHERE user_id = :id AND NOT EXISTS (SELECT FROM users other
                                        WHERE other.email_key = f.email_key AND other.sandbox_of IS NULL)
""")
_FORGET_OWN = text("DELETE FROM former_addresses WHERE user_id = :id AND email_key = ANY(:keys)")
_KEEP = text("""
    INSERT INTO former_addresses (user_id, email_key, last_batch_id)
    SELECT id, email_key, (SELECT last_value FROM batches_id_seq)
    FROM (SELECT CAST(:id AS bigint), key FROM unnest(CAST(:keys AS text[])) AS key
          UNION ALL SELECT id, email_key FROM users WHERE id = ANY(:of_sandboxes)) kept (id, email_key)
""")
# Users of sandboxes with one of these addresses stand for the same person.
_OF_SANDBOXES = text("""
    SELECT u.id FROM organizations o
    CROSS JOIN LATERAL (SELECT id FROM users WHERE sandbox_of = o.id AND email_key = ANY(:keys)) matches
    JOIN users u ON u.id = matches.id
    ORDER BY u.id FOR NO KEY UPDATE OF u
""")
_TAKE_NAMES = text("""
    UPDATE users SET email = 'erased-' || id, first_name = 'erased-' || id, last_name = 'erased-' || id,
                     email_key = NULL, external_id = NULL, erased_at = now, address_changed_at = now
    FROM (SELECT clock_timestamp() AS now) clock
    WHERE id = ANY(:ids)
""")
_FORGET_ADDRESSES = text("""
    DELETE FROM former_addresses f
    WHERE user_id = :id
       OR email_key IN (SELECT email_key FROM former_addresses WHERE user_id = :id)
          AND EXISTS (SELECT FROM users u WHERE u.id = f.user_id AND u.sandbox_of IS NOT NULL)
""")
_FORMER = text("SELECT email_key FROM former_addresses WHERE user_id = :id")
_HAS_ADDRESSES = text("SELECT EXISTS (SELECT FROM former_addresses WHERE user_id = :id)")

_WITHOUT_NAMES = """
    json_build_object(
        'user', json_build_object('id', CAST(e.data #>> '{user,id}' AS bigint),
                                  'first_name', 'erased-' || (e.data #>> '{user,id}'),
                                  'last_name', 'erased-' || (e.data #>> '{user,id}')),
        'transactions', e.data -> 'transactions', 'count', e.data -> 'count', 'amount', e.data -> 'amount',
        'more', e.data -> 'more')"""
_NAMES_THEM = "e.type = 'transaction.claimed' AND CAST(e.data #>> '{user,id}' AS bigint) = ANY(:ids)"
_ERASE_UNNUMBERED = text(f"UPDATE unnumbered_events e SET data = {_WITHOUT_NAMES} WHERE {_NAMES_THEM}")
_ERASE_NUMBERED = text(f"""
    UPDATE events e SET data = {_WITHOUT_NAMES}, digest = {digest(DIGESTED, "e", data=_WITHOUT_NAMES)}
    WHERE {_NAMES_THEM}
""")
