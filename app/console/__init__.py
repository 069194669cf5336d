"""`/console`: pages for the members of an organization, in the same web process, usable without JavaScript.

A page calls the same functions as the views of the API. `blueprints.py` has the checks before every page.
"""

from collections.abc import Callable
from typing import Any

from flask import Flask, Response, request
from jinja2 import StrictUndefined

from app.console import blueprints, error_pages, template_context
from app.console.cookie import ConsoleCookie
from app.console.views import (
    account,
    activity,
    batch_actions,
    batches,
    hold_longer,
    keys,
    link,
    lists,
    members,
    outcome,
    overview,
    requests,
    reversals,
    send,
    send_again,
    send_cost,
    sign_in,
    statement,
    static,
    take_back,
    transactions,
    webhook_actions,
    webhooks,
)

# Each view registers its pages on one of the two blueprints of `paths`.
_VIEWS = (
    *(account, activity, keys, link, members, overview, sign_in, static, webhook_actions, webhooks),
    *(send, send_again, send_cost, outcome, lists, batches, batch_actions, hold_longer, take_back, reversals),
    *(transactions, requests, statement),
)

Handler = Callable[[Any], Response]


def add_console(app: Flask) -> None:
    """Register the console with the application."""
    assert _VIEWS, "the views are imported for their routes"
    app.session_interface = ConsoleCookie()
    app.config.update(ConsoleCookie.SETTINGS)
    app.jinja_options = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    template_context.add_to(app)
    app.register_blueprint(blueprints.door)
    app.register_blueprint(blueprints.pages)


def as_page(handler: Handler) -> Handler:
    """Return a handler that answers errors of the console with a page, with the status of `handler`'s answer."""

    def answer(error: Exception) -> Response:
        response = handler(error)
        return error_pages.page_of(error, response) if is_console(request.path) else response

    return answer


def is_console(path: str) -> bool:
    return path == blueprints.ROOT or path.startswith(f"{blueprints.ROOT}/")
