"""Which recipients are e-mail addresses, and which two are the same."""

import uuid

import pytest

from tests.contract.calls import Organization, refusal, success

_GOOD = "ann@example.com a.b-c_d+e@sub.example.co.uk !#$%&'*+/=?^`{|}~@example.com 1@2.example jörg@example.com"
_GOOD += " 用户@例え.jp ann@bücher.example ann@xn--bcher-kva.example"
_BAD = "ann @example.com ann@ ann@@example.com ann@example a..b@example.com .a@example.com a.@example.com"
_BAD += " ann@.example.com ann@example..com ann@-example.com ann@example-.com ann@exa_mple.com ann@127.0.0.1"
_WITH_BLANKS = ["ann@ex ample.com", "an n@example.com", "Ann <ann@example.com>", "ann@a.com, bob@b.com"]
_WITH_BLANKS += ["ann@example.com\nbcc: bob@example.com", "ann\u0000@example.com", " "]


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ("ann@example.com", "ANN@Example.COM"),
        ("ann@example.com", "\tann@example.com \n"),
        ("jörg@example.com", "JO\u0308RG@example.com"),
        ("ann@bücher.example", "ann@xn--bcher-kva.example"),
    ],
)
def test_two_spellings_of_an_address_are_one_recipient(acme: Organization, one: str, same: str) -> None:
    refusal(acme.live.verify({"recipients": [one, same], "amount": 1}), 400, "recipients.1")


def test_no_dot_and_no_plus_is_folded(acme: Organization) -> None:
    emails = ["annbee@example.com", "ann.bee@example.com", "annbee+1@example.com"]
    success(acme.live.verify({"recipients": emails, "amount": 1}))


def test_an_account_is_found_by_any_spelling_and_the_answer_shows_the_address_as_sent(acme: Organization) -> None:
    mark = uuid.uuid4().hex
    user = acme.service.register(f"J\u00f6rg.{mark}@B\u00fccher.example")
    sent = f"JO\u0308RG.{mark.upper()}@xn--bcher-kva.example"
    [transaction] = success(acme.live.send({"recipient": f" {sent} ", "amount": 1}), 201)["transactions"]
    assert transaction["email"] == sent
    assert transaction["recipient"]["id"] == user["id"]
