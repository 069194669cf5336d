"""The envelope around every answer: one model for each answer of the table of calls, and one for all errors."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from app.api.openapi import (
    answer_values,
    batch_answers,
    event_answers,
    health_answers,
    organization_answers,
    platform_answers,
    request_answers,
    reversal_answers,
    sandbox_answers,
    statement_answers,
    verify_answers,
)
from app.api.openapi.answer_values import Additions
from app.api.openapi.calls import CODES, SUCCESSES
from app.noun import Null, says, says_one_of

Sentences = Annotated[list[str], Field(min_length=1)]


class Success(BaseModel):
    """The envelope of every success."""

    success: Literal[True] = says("True on a success.", True)
    data: BaseModel
    errors: Null = says("Null on a success.", None)
    additional_data: Additions


class Problem(BaseModel):
    """The error, for programs."""

    code: str = says_one_of(CODES, "A stable word.")


class Failure(BaseModel):
    """Every error: the name of a field, and at least one sentence about it."""

    success: Literal[False] = says("False on an error.", False)
    data: Null = says("Null on an error.", None)
    errors: dict[str, Sentences] = says("Each field at fault, with sentences about it.", min_length=1)
    additional_data: Problem | None = says("Null on a 400; on every other error its code.")


_FILES = (
    *(answer_values, batch_answers, event_answers, health_answers, organization_answers, platform_answers),
    *(request_answers, reversal_answers, sandbox_answers, statement_answers, verify_answers),
)
_MODELS = {name: model for file in _FILES for name, model in vars(file).items()}


def _success(answer: dict[str, Any]) -> type[BaseModel]:
    """Return the model of a success. By default, the model of its data has the same name without `Answer`."""
    name: str = answer["model"]
    data = answer.get("data", name.removesuffix("Answer"))
    data = _MODELS[data] if isinstance(data, str) else data
    beside = _MODELS[answer.get("additional_data", "Additions")]
    payload, additions = (data, says("The payload.")), (beside, says("Additional data."))
    return create_model(name, __base__=Success, __doc__=data.__doc__, data=payload, additional_data=additions)


ENVELOPES: dict[str, type[BaseModel]] = {answer["model"]: _success(answer) for answer in SUCCESSES} | {
    "Failure": Failure
}
