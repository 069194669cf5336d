"""The forms that have had their effect. A form's id is used up in the transaction of the effect, so it has it once."""

from sqlalchemy import Connection, text

# Longer than a session, and so than any page whose form could be sent again.
KEPT_HOURS = 24


def use(connection: Connection, form_id: str, *, member_id: int) -> bool:
    """Use up the id of a form of this member; return False if it was used up before.

    If another transaction has just used it up, this waits for the end of that one.
    """
    connection.execute(_FORGET_OLD, {"hours": KEPT_HOURS})
    return bool(connection.execute(_USE, {"form_id": form_id, "member_id": member_id}).rowcount)


_USE = text("INSERT INTO used_forms (member_id, form_id) VALUES (:member_id, :form_id) ON CONFLICT DO NOTHING")
# Each form deletes a few old ones, so no scheduled task is needed for that.
_FORGET_OLD = text("""
    DELETE FROM used_forms
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM used_forms
                           WHERE used_at < (SELECT clock_timestamp() - make_interval(hours => :hours))
                           ORDER BY used_at LIMIT 20 FOR UPDATE SKIP LOCKED))
""")
