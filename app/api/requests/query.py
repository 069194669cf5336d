"""The query of the request: its parameters, each with all its values."""

from flask import request

from app.pages.queries import Query
from app.values.validation_errors import FaultsFound


def query() -> Query:
    """Return the parameters of the request."""
    return request.args.to_dict(flat=False)


def refuse_parameters() -> None:
    """Refuse every parameter, for a call that takes none: nothing that a caller sends is ignored.

    Raises:
        InvalidRequest: there are parameters; each is a fault under its name.
    """
    if request.environ.get("QUERY_STRING"):
        faults = FaultsFound()
        faults.add_unknown("parameter", request.args, (), whole="query")
        faults.raise_if_any()
