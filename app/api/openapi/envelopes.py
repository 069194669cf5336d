"""The envelope around every answer: one model for each answer of the table of calls, and one for all errors."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, create_model

from app.api.calls import CALLS as DECLARED
from app.api.openapi.answer_values import Additions
from app.api.openapi.batch_answers import (
    AcceptedBatch,
    SendAdditions,
    SendResult,
    TransactionList,
)
from app.api.openapi.calls import CODES
from app.api.openapi.event_answers import EventList, PlatformEventList
from app.api.openapi.health_answers import Health, Readiness
from app.api.openapi.organization_answers import (
    ClaimedAdditions,
    CreatedMember,
    OrganizationAdditions,
    RegisteredUsers,
    SandboxTime,
    Statement,
)
from app.api.openapi.reversal_answers import (
    QueuedReversal,
    ReverseResult,
    ReverseVerdict,
    ReverseVerifyAdditions,
)
from app.api.openapi.verify_answers import SentBefore, Verdict, VerifyAdditions
from app.api_keys import keys, new_keys
from app.batches.batch import batches, listed_batches
from app.batches.transaction import Transaction
from app.ledger import sandbox
from app.noun import Null, says, says_one_of
from app.organizations import in_mode, refills, whole
from app.pages.action_pages import actions
from app.pages.entry_pages import entries
from app.request_log import requests
from app.reversals.reversal import listed_reversals, reversals
from app.users import registered

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


# The data of successes whose name is that of the data and `Answer`, and that have no additional data of their own.
_DATA = (
    *(SentBefore, Statement, in_mode.model, SandboxTime, EventList, PlatformEventList, requests.page("calls")),
    *(batches.model, listed_batches.page(), Transaction, TransactionList),
    *(reversals.model, listed_reversals.page(), QueuedReversal),
    *(registered.model, registered.page(), RegisteredUsers, entries.page(), whole.model, whole.page()),
    *(refills.model, refills.page(), keys.page(), actions.page(), Health, Readiness),
    *(call.answer.data for call in DECLARED if call.answer.data is not None),
)
# The data and the additional data of each success, by the name of its model in the table of calls.
_SUCCESSES: dict[str, tuple[type[BaseModel], type[Additions]]] = {
    **{f"{data.__name__}Answer": (data, Additions) for data in _DATA},
    "VerifyAnswer": (Verdict, VerifyAdditions),
    "SendAnswer": (SendResult, SendAdditions),
    "AcceptedAnswer": (AcceptedBatch, SendAdditions),
    "ReverseVerifyAnswer": (ReverseVerdict, ReverseVerifyAdditions),
    "ReverseAnswer": (ReverseResult, Additions),
    "OwnOrganizationAnswer": (in_mode.model, OrganizationAdditions),
    "SandboxUserAnswer": (sandbox.users.model, ClaimedAdditions),
    "ClaimingUserAnswer": (registered.model, ClaimedAdditions),
    "NewKeyAnswer": (new_keys.model, Additions),
    "NewMemberAnswer": (CreatedMember, Additions),
}


def _success(name: str, data: type[BaseModel], beside: type[Additions]) -> type[BaseModel]:
    payload, additions = (data, says("The payload.")), (beside, says("Additional data."))
    return create_model(name, __base__=Success, __doc__=data.__doc__, data=payload, additional_data=additions)


ENVELOPES: dict[str, type[BaseModel]] = {name: _success(name, *models) for name, models in _SUCCESSES.items()} | {
    "Failure": Failure
}
