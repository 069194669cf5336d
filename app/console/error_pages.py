"""An error as a page, with a sentence and a link to go on."""

from flask import Response, make_response, render_template
from werkzeug.exceptions import HTTPException

from app.console.blueprints import add_headers
from app.errors import PointsError
from app.metrics.record import current_record

_SENTENCES = {
    404: "There is nothing at this address, or it is not your organization's.",
    405: "This address does not take this kind of request.",
    413: "The file or text that you sent is too large.",
    503: "The service cannot reach its database, or is busy. Nothing was changed. Try again soon.",
}


def page_of(error: Exception, status: int) -> Response:
    """Answer with a page. Its sentence is from an expected error or belongs to the status, never from a library."""
    sentence = error.sentence if isinstance(error, PointsError) else _SENTENCES.get(status)
    if isinstance(error, HTTPException) and status == 403:
        sentence = error.description
    if sentence is None:
        sentence = f"Something went wrong on our side. Quote {current_record().request_id} when you report it."
    body = render_template("console/error.html", status=status, sentence=sentence)
    return add_headers(make_response(body, status))
