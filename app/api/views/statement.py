"""`GET /v1/statement`: what moved the balance of the key's mode on each day."""

from functools import partial

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.query import parse_statement_request, query
from app.postgres.database import single_statement
from app.postgres.standby import long_read
from app.statement.read import lines, statement_of

blueprint = Blueprint("statement", __name__)


@blueprint.get("/v1/statement")
def show_statement() -> Response:
    who = caller()
    first, last = parse_statement_request(query())
    of = partial(statement_of, organization_id=who.organization.id, sandbox=who.sandbox, first=first, last=last)
    found = long_read(of, within=single_statement)
    return envelope.success(found.payload(lines.payload))
