"""The rival's front end: one view, which queues the send and waits for the result."""

from typing import Any

from flask import Flask, abort, jsonify, request
from sqlalchemy import select
from sqlalchemy.orm import Session

from benchmarks.rival.models import Organization, engine
from benchmarks.rival.tasks import issue

_TIMEOUT_S = 600

app = Flask(__name__)


@app.post("/send")
def send() -> Any:
    """Answer 201 with every transaction."""
    key = request.headers.get("Authorization", "").removeprefix("Bearer ")
    with Session(engine()) as session:
        organization_id = session.scalar(select(Organization.id).where(Organization.api_key == key))
    if organization_id is None:
        abort(401)
    body = request.get_json()
    transactions = issue.delay(organization_id, body["recipients"], body["amount"]).get(timeout=_TIMEOUT_S)
    return jsonify(transactions=transactions, amount=sum(one["amount"] for one in transactions if one["debited"])), 201
