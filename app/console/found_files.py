"""All that was found in a list, as a file: read piece by piece while it is written."""

from collections.abc import Iterator, Mapping

from flask import Response, request
from wtforms import Form

from app.console import files
from app.console.caller import calling_member
from app.console.files import save_as
from app.console.list_queries import asked_of
from app.console.slow_work import searches
from app.errors import InvalidRequest
from app.exports.columns import CSV
from app.exports.export import begin
from app.exports.sources import NOUNS
from app.pages.parameters import id_of
from app.pages.queries import read_parameter
from app.postgres.database import transaction
from app.values.validation_errors import FaultsFound


def found_file(kind: str, form: Form, fixed: Mapping[str, str] | None = None) -> Response:
    """Answer with the rows of a list that match what a form asks for, oldest first.

    The parameter `after` has it go on behind a row, the last of a file that broke off.

    Raises:
        InvalidRequest: something is asked for in a wrong way.
        NotFound: there is no such row.
    """
    with transaction() as connection:
        who = calling_member(connection)
    asked = asked_of(kind, who, form, fixed, beside=("after",))
    if form.errors:
        raise InvalidRequest(form.errors)
    faults = FaultsFound()
    after = read_parameter(request.args.to_dict(flat=False), "after", id_of(NOUNS[kind]), faults)
    faults.raise_if_any()
    export = begin(kind, CSV, asked.filters, after=after)

    def content() -> Iterator[bytes]:
        if after is None:
            yield files.MARK.encode()
        yield from export.content(searches.turn_of_many)

    return save_as(Response(content(), content_type="text/csv; charset=utf-8"), f"{kind}.csv")
