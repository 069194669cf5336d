"""An error as a page, with a sentence and a link to go on."""

from flask import Response, flash, g, make_response, redirect, render_template, request, url_for
from werkzeug.exceptions import HTTPException

from app.console.blueprints import add_headers, mode_of, page_that_tells
from app.console.caller import FormUsed
from app.console.slow_work import Busy
from app.errors import PointsError
from app.metrics.requests import current_record

_SENTENCES = {
    404: "There is nothing at this address, or it is not your organization's.",
    405: "This address does not take this kind of request.",
    413: "The file or text that you sent is too large.",
    503: "The service cannot reach its database, or is busy. Try again soon.",
}
_NOT_KNOWN = "It is not known whether this was done: the service failed while it did what you asked."


def page_of(error: Exception, answer: Response) -> Response:
    """Answer with a page, with the status of `answer`.

    Its sentence is from an expected error or belongs to the status, never from a library.
    """
    if isinstance(error, FormUsed):
        flash(error.sentence, "bad")
        return add_headers(make_response(redirect(page_that_tells(), 303)))
    g.mode = mode_of(request.path)
    status = answer.status_code
    is_form = request.method not in ("GET", "HEAD")
    # Whatever fails in a view may fail after a COMMIT was sent; an expected error has a sentence of its own.
    is_unknown = is_form and status >= 500 and g.get("view_runs", False) and not isinstance(error, PointsError)
    body = render_template(
        "console/error.html",
        status=status,
        sentence=_sentence_of(error, status),
        not_known=_NOT_KNOWN if is_unknown else None,
        is_busy=isinstance(error, Busy),
        nothing_done=is_form and status == 503 and not is_unknown,
        overview=url_for("console.overview"),
        told_at=page_that_tells() if is_form and status != 403 else None,
        looks_again=status == 503 and not is_form,
    )
    page = add_headers(make_response(body, status))
    wait_s = error.retry_after_s if isinstance(error, Busy) else answer.headers.get("Retry-After")
    if wait_s is not None:
        page.headers["Retry-After"] = str(wait_s)
    return page


def refused_form(page: str, error: PointsError) -> Response:
    """Answer with the page of a form that was not taken: it says the reason beside a field."""
    answer = make_response(page, error.status if isinstance(error, Busy) else 400)
    if isinstance(error, Busy):
        answer.headers["Retry-After"] = str(error.retry_after_s)
    return answer


def _sentence_of(error: Exception, status: int) -> str:
    if isinstance(error, PointsError):
        return error.sentence
    if isinstance(error, HTTPException) and status == 403 and error.description:
        return error.description
    ours = f"Something went wrong on our side. Quote {current_record().request_id} when you report it."
    return _SENTENCES.get(status, ours)
