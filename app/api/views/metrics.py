"""`GET /metrics`: the figures of the whole service, in the text form of Prometheus."""

from flask import Blueprint, Response

from app.metrics.page import CONTENT_TYPE, page

blueprint = Blueprint("metrics", __name__)


@blueprint.get("/metrics")
def metrics() -> Response:
    """Answer 200, also while servers are away: figures that cannot be read are absent."""
    return Response(page.text(), content_type=CONTENT_TYPE)
