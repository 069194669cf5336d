"""An error as a page: what it is, in a sentence, and where to go on."""

from flask import Response, make_response, render_template
from werkzeug.exceptions import HTTPException

from app.api.call.record import current_record
from app.api.console.paths import add_headers
from app.errors import PointsError

_SENTENCES = {
    404: "There is nothing at this address, or it is not your organization's.",
    405: "This address does not take what was sent to it.",
    413: "What was sent is larger than it may be.",
    503: "The service is out of reach of its database, or busy. Try again soon: nothing was changed.",
}


def page_of(error: Exception, status: int) -> Response:
    """Answer with a page. Its words are those of an expected error, or of the status; never a library's."""
    sentence = error.sentence if isinstance(error, PointsError) else _SENTENCES.get(status)
    if isinstance(error, HTTPException) and status == 403:
        sentence = error.description
    if sentence is None:
        sentence = f"Something went wrong on our side. Say {current_record().request_id} when you report it."
    body = render_template("console/error.html", status=status, sentence=sentence)
    return add_headers(make_response(body, status))
