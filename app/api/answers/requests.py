"""The body of a call that a key made."""

from typing import Any

from app.pages.request_pages import RequestRow
from app.values.timestamps import timestamp


def request_payload(call: RequestRow) -> dict[str, Any]:
    """A call, without the id of its row."""
    shown = call._asdict() | {"created_at": timestamp(call.created_at)}
    del shown["id"]
    return shown
