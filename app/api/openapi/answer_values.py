"""The models that several answers have, and the codes of an organization that may not issue.

The models are beside, in a file for each noun. They only describe: `app/api/answers/` renders the answers, ten times as
fast as models would. A model's docstring is for callers: it becomes the description of a schema.
"""

from pydantic import BaseModel

from app.errors import OrganizationDisabled, OrganizationSuspended
from app.noun import Id, says

# The codes of an organization that may not issue.
MAY_NOT_ISSUE = (OrganizationDisabled.code, OrganizationSuspended.code)


class User(BaseModel):
    """An account."""

    id: Id = says("The id of the account.", 7)
    first_name: str = says("The given name.", "Ada")
    last_name: str = says("The family name.", "Lovelace")


class Additions(BaseModel):
    """The additional data."""

    version: str = says("The version of the interface.", "1.0")
