"""The answers of all calls, as models: the envelope of each success, and the one of all errors, with their examples."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from app.api.calls import Additions, Answer
from app.api.refusals import Refusal
from app.api.views import CALLS
from app.noun_fields import Null, example, says, says_one_of

Sentences = Annotated[list[str], Field(min_length=1)]


class Success(BaseModel):
    """The envelope of every success."""

    success: Literal[True] = says("True on a success.", True)
    data: BaseModel
    errors: Null = says("Null on a success.", None)
    additional_data: Additions


@cache
def envelopes() -> dict[str, type[BaseModel]]:
    """Return the models of the answers by their names."""
    successes = [answer for call in CALLS for answer in call.successes]
    return {answer.model: _success(answer) for answer in successes if answer.data is not None} | {"Failure": _failure()}


def _success(answer: Answer) -> type[BaseModel]:
    assert answer.data is not None
    payload, additions = (answer.data, says("The payload.")), (answer.beside, says("Additional data."))
    about = answer.data.__doc__
    return create_model(answer.model, __base__=Success, __doc__=about, data=payload, additional_data=additions)


def _failure() -> type[BaseModel]:
    class Problem(BaseModel):
        """The error, for programs."""

        code: str = says_one_of(codes(), "A stable word.")
        # With a factory, it is described as one that may be absent, and without a default.
        oldest: int = says("With `events_expired`: the sequence of the oldest event kept.", default_factory=int, ge=1)

    class Failure(BaseModel):
        """Every error: the name of a field, and at least one sentence about it."""

        success: Literal[False] = says("False on an error.", False)
        data: Null = says("Null on an error.", None)
        errors: dict[str, Sentences] = says("Each field at fault, with sentences about it.", min_length=1)
        additional_data: Problem | None = says("Null on a 400; on every other error its code.")

    return Failure


@cache
def refusals() -> dict[str, Refusal]:
    """Return what calls refuse, by the name of the refusal."""
    named = {refusal.name: refusal for call in CALLS for refusal in call.refusals}
    return dict(sorted(named.items(), key=lambda each: (each[1].status, each[0])))


def codes() -> tuple[str, ...]:
    """Return every value of `additional_data.code` on an error."""
    return tuple(sorted({code for refusal in refusals().values() for code in refusal.codes}))


def failures() -> dict[str, dict[str, Any]]:
    """Return the examples of errors by their names."""
    return {
        name: _example_of_failure(sentences, refusal)
        for refusal in refusals().values()
        for name, sentences in refusal.examples.items()
    }


def _example_of_failure(sentences: Mapping[str, str], refusal: Refusal) -> dict[str, Any]:
    errors = {name: [sentence] for name, sentence in sentences.items()}
    additional = {"code": refusal.codes[0], **refusal.beside} if refusal.codes else None
    return {"success": False, "data": None, "errors": errors, "additional_data": additional}


def examples() -> dict[str, dict[str, Any]]:
    """Return the examples of successes by their names: those of their models, with what each says that differs."""
    return {
        name: _example(answer, name)
        for call in CALLS
        for answer in call.successes
        if answer.data is not None
        for name in answer.examples
    }


def _example(answer: Answer, name: str) -> dict[str, Any]:
    assert answer.data is not None
    data = example(answer.data, **answer.examples[name])
    beside = example(answer.beside, **answer.examples_beside.get(name, {}))
    return example(envelopes()[answer.model], data=data, additional_data=beside)
