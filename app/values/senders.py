"""The member who sent a batch, in SQL."""


def sender_of(member_id: str) -> str:
    """Return the SQL for a batch's `sender` from its `member_id`: a User, or null (without a look-up) if a key sent it.

    The names of a member never change.
    """
    return f"""
        CASE WHEN {member_id} IS NOT NULL
             THEN (SELECT json_build_object('id', m.id, 'first_name', m.first_name, 'last_name', m.last_name)
                   FROM members m WHERE m.id = {member_id}) END AS sender
    """
