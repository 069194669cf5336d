"""The fields of a person: the address and the names."""

from app.fields.kinds import EmailAddress, Name

EMAIL = EmailAddress("email", "The address of the person.", "ada@example.com", is_required=True)
FIRST_NAME = Name("first_name", "The given name.", "Ada", is_required=True)
LAST_NAME = Name("last_name", "The family name; some people have none.", "Lovelace", default="")
