"""The data of answers about the service itself."""

from typing import Literal

from pydantic import BaseModel

from app.noun import says, says_one_of


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = says("Always `ok`.", "ok")


class Readiness(BaseModel):
    """PostgreSQL answers; `redis` says whether Redis does."""

    status: Literal["ready"] = says("Always `ready`; otherwise the answer is 503.", "ready")
    postgresql: Literal["ok"] = says("Always `ok`; while PostgreSQL is away, the answer is 503.", "ok")
    redis: str = says_one_of(("ok", "away"), "Sends go on while it is away, and take up to 3 s more.", "ok")
