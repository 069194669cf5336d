"""Every example of `/openapi.json` is real: the running service is brought to answer it, in value and in headers."""

import re
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from app.api.openapi.calls import GROUPS
from app.api.openapi.examples import ANSWERS, BODIES, REVERSE_BODIES, WEBHOOK_BODIES
from app.api.openapi.failures import EXAMPLES
from tests.e2e.openapi.scene import Scene
from tests.e2e.openapi.scenes import SCENES
from tests.service.inside import Service

# The running service neither breaks nor loses its servers on demand: `tests/unit/test_openapi_faults.py` plays these.
PLAYED_ELSEWHERE = {"too_many_calls", "fault", "database_away", "not_ready"}

# Of texts that are others each time: the id of an event, and the secret of a webhook.
_FORMS = {"id": r"evt_[1-9]\d*", "secret": r"whsec_[A-Za-z0-9+/]{43}="}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")


@pytest.fixture(scope="module")
def described(service: Service) -> dict[str, Any]:
    described: dict[str, Any] = service.call("GET", "/openapi.json").json()
    return described


def _whole(described: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of the description itself, where a reference to it may stand."""
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    whole: dict[str, Any] = described["components"][kind][name]
    return whole


def _response(described: dict[str, Any], answer: httpx.Response) -> dict[str, Any]:
    """Return what the description says of the call that was answered, under the status it was answered with."""
    path, method = answer.request.url.path, answer.request.method
    for template, methods in described["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", template), path):
            # A call with another method is described with each of the path's own.
            operation = methods.get(method.lower()) or next(iter(methods.values()))
            return _whole(described, operation["responses"][str(answer.status_code)])
    pytest.fail(f"{path} is not described")


def _alike(example: Any, answered: Any, field: str = "") -> bool:
    """Compare what was answered with an example: equal but for ids and times, which must be ids and times."""
    if isinstance(example, dict) and isinstance(answered, dict):
        return list(example) == list(answered) and all(_alike(example[name], answered[name], name) for name in example)
    if isinstance(example, list) and isinstance(answered, list):
        return len(example) == len(answered) and all(map(_alike, example, answered))
    if isinstance(example, str) and field in _FORMS:
        return re.fullmatch(_FORMS[field], answered) is not None
    if field in ("id", "batch_id", "api_key_id", "reversal_id", "position", "sequence", "ms"):
        return type(answered) is int and answered >= (field not in ("position", "ms"))
    if field.endswith(("_at", "_since", "_until", "timestamp")) and example is not None:
        return isinstance(answered, str) and all(_TIME.match(time) for time in (example, answered))
    return type(example) is type(answered) and bool(example == answered)


def test_every_example_of_an_answer_is_played(described: dict[str, Any]) -> None:
    bodies = {*BODIES, *REVERSE_BODIES, *WEBHOOK_BODIES}
    assert set(described["components"]["examples"]) == set(SCENES) | PLAYED_ELSEWHERE | bodies
    assert set(SCENES) | PLAYED_ELSEWHERE == set(ANSWERS) | set(EXAMPLES)


@pytest.mark.parametrize("name", SCENES)
def test_the_service_answers_as_the_example_says(service: Service, described: dict[str, Any], name: str) -> None:
    scene = Scene(service=service, described=described)
    answer = SCENES[name](scene)
    response = _response(described, answer)
    [(content_type, content)] = response["content"].items()
    assert answer.headers["Content-Type"] == content_type
    assert name in content["examples"], "the example stands with another call or another status"
    document = scene.document(answer)
    assert _alike(described["components"]["examples"][name]["value"], document), document
    Draft202012Validator(content["schema"] | {"components": described["components"]}).validate(answer.json())
    for header, reference in response["headers"].items():
        about = _whole(described, reference)
        assert header in answer.headers or not about["required"], header
        if header in answer.headers:
            Draft202012Validator(about["schema"]).validate(answer.headers[header])


_TAKEN = [(call, name) for call in ("verify", "send") for name in GROUPS["Points"][call]["body"]["examples"]]


@pytest.mark.parametrize(("call", "name"), _TAKEN)
def test_every_example_of_a_body_is_taken(service: Service, described: dict[str, Any], name: str, call: str) -> None:
    scene = Scene(service=service, described=described)
    status = 202 if name == "later" else 200 if call == "verify" else 201
    assert getattr(scene, call)(scene.acme().live, scene.body(name)).status_code == status


@pytest.mark.parametrize("call", ["/v1/points/reverse/verify", "/v1/points/reverse"])
@pytest.mark.parametrize("name", REVERSE_BODIES)
def test_every_example_of_what_to_take_back_is_taken(
    service: Service, described: dict[str, Any], name: str, call: str
) -> None:
    scene = Scene(service=service, described=described)
    answer = scene.taking_back(name, path=call)
    assert answer.status_code == (200 if call.endswith("verify") else 201)


def test_a_repeated_send_names_the_header_that_is_described(service: Service, described: dict[str, Any]) -> None:
    scene = Scene(service=service, described=described)
    key, headers = scene.acme().live, {"Idempotency-Key": "january"}
    first, again = (scene.send(key, scene.body("to_two"), headers=headers) for _ in range(2))
    assert first.json() == again.json()
    assert "Idempotency-Replayed" not in first.headers
    assert "Idempotency-Replayed" in _response(described, again)["headers"]
    assert again.headers["Idempotency-Replayed"] == "true"
