"""The model that several answers have.

The models are beside, in a file for each noun. They only describe: `app/api/answers/` renders the answers, ten times as
fast as models would. A model's docstring is for callers: it becomes the description of a schema.
"""

from pydantic import BaseModel

from app.noun import says


class Additions(BaseModel):
    """The additional data."""

    version: str = says("The version of the interface.", "1.0")
