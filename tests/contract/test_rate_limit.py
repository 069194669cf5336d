"""The rate limit: so many calls of one key, and then 429 until there is room again."""

from concurrent.futures import ThreadPoolExecutor

from tests.contract.calls import address, organization, refusal, success
from tests.service.up import Service

# The limit of this service is 300 calls a minute. Two windows take no more than 600, wherever they begin.
_LIMIT, _CALLS = 300, 601


def test_a_key_that_calls_too_often_gets_429_with_retry_after_and_other_keys_do_not(narrow: Service) -> None:
    made = organization(narrow, 100)
    busy, other = made.live, made.new_key()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: busy.get("/v1/organization"), range(_CALLS)))
    assert {answer.status_code for answer in answers} == {200, 429}
    assert sum(answer.status_code == 200 for answer in answers) >= _LIMIT
    limited = next(answer for answer in answers if answer.status_code == 429)
    refusal(limited, 429, "rate_limit")
    assert 1 <= int(limited.headers["Retry-After"]) <= 60

    # It is looked at before the body is read, and what is refused is not issued.
    headers = {"Content-Type": "text/plain"}
    refusal(busy.call("POST", "/v1/points/send", content=b"x" * 300_000, headers=headers), 429, "rate_limit")
    body = {"recipient": address(), "amount": 10}
    refusal(busy.send(body, Idempotency_Key="limited"), 429, "rate_limit")
    assert other.balance == 100
    answer = other.send(body, Idempotency_Key="limited")
    success(answer, 201)
    assert "Idempotency-Replayed" not in answer.headers
    assert made.development.balance == 77
    assert {busy.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")} == {200}
