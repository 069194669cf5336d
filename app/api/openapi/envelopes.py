"""The envelope around every answer: one model for each answer of the table of calls, and one for all errors."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, create_model

from app.api.calls import CALLS as DECLARED
from app.api.openapi.answer_values import Additions
from app.api.openapi.batch_answers import (
    AcceptedBatch,
    Batch,
    BatchList,
    SendAdditions,
    SendResult,
    Transaction,
    TransactionList,
)
from app.api.openapi.calls import CODES
from app.api.openapi.event_answers import EventList
from app.api.openapi.health_answers import Health, Readiness
from app.api.openapi.organization_answers import OrganizationAdditions
from app.api.openapi.platform_answers import CreatedMember, PlatformEventList, RegisteredUsers
from app.api.openapi.reversal_answers import (
    QueuedReversal,
    Reversal,
    ReversalList,
    ReverseResult,
    ReverseVerdict,
    ReverseVerifyAdditions,
)
from app.api.openapi.sandbox_answers import ClaimedAdditions, SandboxTime
from app.api.openapi.statement_answers import Statement
from app.api.openapi.verify_answers import SentBefore, Verdict, VerifyAdditions
from app.api_keys import keys, new_keys
from app.ledger import sandbox
from app.noun import Null, says, says_one_of
from app.organizations import in_mode, refills, whole
from app.pages.action_pages import actions
from app.pages.entry_pages import entries
from app.request_log.rows import requests
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


# The data and the additional data of each success, by the name of its model in the table of calls.
_SUCCESSES: dict[str, tuple[type[BaseModel], type[Additions]]] = {
    "VerifyAnswer": (Verdict, VerifyAdditions),
    "SentBeforeAnswer": (SentBefore, Additions),
    "SendAnswer": (SendResult, SendAdditions),
    "AcceptedAnswer": (AcceptedBatch, SendAdditions),
    "ReverseVerifyAnswer": (ReverseVerdict, ReverseVerifyAdditions),
    "ReverseAnswer": (ReverseResult, Additions),
    "QueuedReversalAnswer": (QueuedReversal, Additions),
    "ReversalListAnswer": (ReversalList, Additions),
    "ReversalAnswer": (Reversal, Additions),
    "BatchListAnswer": (BatchList, Additions),
    "BatchAnswer": (Batch, Additions),
    "TransactionListAnswer": (TransactionList, Additions),
    "TransactionAnswer": (Transaction, Additions),
    "EventListAnswer": (EventList, Additions),
    "RequestListAnswer": (requests.page("calls"), Additions),
    "OwnOrganizationAnswer": (in_mode.model, OrganizationAdditions),
    "StatementAnswer": (Statement, Additions),
    "OrganizationAnswer": (in_mode.model, Additions),
    "SandboxTimeAnswer": (SandboxTime, Additions),
    "SandboxUserAnswer": (sandbox.users.model, ClaimedAdditions),
    "ClaimingUserAnswer": (registered.model, ClaimedAdditions),
    "RegisteredUsersAnswer": (RegisteredUsers, Additions),
    "UserListAnswer": (registered.page(), Additions),
    "PlatformUserAnswer": (registered.model, Additions),
    "EntryListAnswer": (entries.page(), Additions),
    "PlatformOrganizationAnswer": (whole.model, Additions),
    "OrganizationListAnswer": (whole.page(), Additions),
    "RefillAnswer": (refills.model, Additions),
    "RefillListAnswer": (refills.page(), Additions),
    "NewKeyAnswer": (new_keys.model, Additions),
    "KeyListAnswer": (keys.page(), Additions),
    "NewMemberAnswer": (CreatedMember, Additions),
    "ActionListAnswer": (actions.page(), Additions),
    "PlatformEventListAnswer": (PlatformEventList, Additions),
    "HealthAnswer": (Health, Additions),
    "ReadinessAnswer": (Readiness, Additions),
    **{call.answer.model: (call.answer.data, Additions) for call in DECLARED if call.answer.data is not None},
}


def _success(name: str, data: type[BaseModel], beside: type[Additions]) -> type[BaseModel]:
    payload, additions = (data, says("The payload.")), (beside, says("Additional data."))
    return create_model(name, __base__=Success, __doc__=data.__doc__, data=payload, additional_data=additions)


ENVELOPES: dict[str, type[BaseModel]] = {name: _success(name, *models) for name, models in _SUCCESSES.items()} | {
    "Failure": Failure
}
