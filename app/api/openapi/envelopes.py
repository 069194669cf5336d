"""The envelope around every answer: one model for each answer of the table of calls, and one for all errors."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from app.api.openapi import answers
from app.api.openapi.answers import Null, says
from app.api.openapi.calls import CODES, SUCCESSES

Sentences = Annotated[list[str], Field(min_length=1)]


class Success(BaseModel):
    """The envelope of every success."""

    success: Literal[True] = says("True: it went well.", True)
    data: BaseModel
    errors: Null = says("Null on a success.", None)
    additional_data: answers.Additions


class Problem(BaseModel):
    """What went wrong, for programs."""

    code: Literal[CODES] = says("A word that stays the same.")  # type: ignore[valid-type]


class Failure(BaseModel):
    """Every error: the name of a field, and at least one sentence about it."""

    success: Literal[False] = says("False: it did not go well.", False)
    data: Null = says("Null on an error.", None)
    errors: dict[str, Sentences] = says("The name of each field at fault, with sentences about it.", min_length=1)
    additional_data: Problem | None = says("Null on a 400; on every other error its code.")


def _success(answer: dict[str, Any]) -> type[BaseModel]:
    """Return the model of a success. Its data is of the model of its name without `Answer`, if no other is named."""
    name: str = answer["model"]
    data = getattr(answers, answer.get("data", name.removesuffix("Answer")))
    beside = getattr(answers, answer.get("additional_data", "Additions"))
    payload, additions = (data, says("The payload.")), (beside, says("What is said beside it."))
    return create_model(name, __base__=Success, __doc__=data.__doc__, data=payload, additional_data=additions)


ENVELOPES: dict[str, type[BaseModel]] = {answer["model"]: _success(answer) for answer in SUCCESSES} | {
    "Failure": Failure
}
