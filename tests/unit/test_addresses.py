"""E-mail addresses: what is one, and when two of them are the same."""

import email_validator
import pytest
from hypothesis import assume, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from app.errors import InvalidAddress
from app.values.addresses import LENGTH_MAX, PLAIN, parse

_LONGEST = f"{'a' * 64}@{'b' * 63}.{'c' * 63}.{'d' * 58}.de"

# Mostly right, and wrong only in small things, so that the fast pattern accepts one in two.
_ATOM = st.text("aZ09!#$%&'*+/=?^_`{|}~-", min_size=1, max_size=20)
_LOCAL = st.lists(_ATOM, min_size=1, max_size=4).map(".".join) | st.text("aZ09+-.", min_size=1, max_size=66)
_LABEL = st.from_regex(r"[aZ09]([aZ09-]{0,4}[aZ09])?", fullmatch=True) | st.sampled_from(
    ["a-", "-a", "", "xn--a", "XN--80ak6aa92e", "ab--c", "a--b", "b" * 60, "b" * 63, "b" * 64, "test", "local"]
)
_ENDING = st.sampled_from([".de"] * 6 + ["", ".COM", ".c-d", ".d1", ".1d", ".", ".de\n", ".de-"])
_NEARLY_PLAIN = st.builds(
    lambda local, labels, ending: f"{local}@{'.'.join(labels)}{ending}",
    _LOCAL,
    st.lists(_LABEL, min_size=1, max_size=5),
    _ENDING,
)


@given(_NEARLY_PLAIN)
@effort(max_examples=400, deadline=None)
def test_what_the_fast_pattern_accepts_the_library_accepts_under_the_same_key(text: str) -> None:
    # Were the pattern to accept next to nothing, hypothesis would complain of the many assumptions.
    assume(PLAIN.match(text))
    checked = email_validator.validate_email(text, check_deliverability=False, strict=True)
    assert parse(text).key == checked.normalized.lower()


@given(st.text(st.characters(), max_size=300) | st.builds("{}@{}".format, st.text(), st.text()))
@effort(deadline=None)
def test_any_text_is_an_address_or_refused_in_one_printable_sentence(text: str) -> None:
    try:
        address = parse(text)
    except InvalidAddress as refusal:
        sentence = refusal.sentence
    else:
        sentence = "must be as it is."
        assert (address.text, address.key) == (text.strip(), address.key.lower())
    assert sentence.startswith("must be ")
    assert sentence.isprintable()


@pytest.mark.parametrize("text", ["用户@例子.广告", "θσερ@εχαμπλε.ψομ", "ñandú@example.com", "a@xn--fiqs8s.xn--fiqs8s"])
def test_international_domains_and_local_parts_are_addresses(text: str) -> None:
    assert parse(text).text == text


@pytest.mark.parametrize("domain", ["company.test", "printer.local", "nowhere.invalid", "mail.example"])
def test_a_reserved_domain_is_an_address_because_only_syntax_is_checked(domain: str) -> None:
    assert parse(f"a@{domain}").key == f"a@{domain}"


@pytest.mark.parametrize(
    "text",
    [
        "a", "@", "a@", "@b.de", "a@b", "a@localhost", "a@@b.de", "a@b@c.de",
        ".a@b.de", "a.@b.de", "a..b@c.de", "a@b..de", "a@.b.de", "a@b.de.", "a@-b.de", "a@b-.de",
        "a b@c.de", "a@b c.de", "a@b_c.de", "a@b.c1", "a@1.2.3.4", "a@[1.2.3.4]", "a@[IPv6:::1]",
        '"a b"@c.de', "Bob <a@b.de>", "<a@b.de>", "a@b.de,c@d.de", "a@b.de;c@d.de", "mailto:a@b.de",
        "a@b.de\nc@d.de", "a\0@b.de", "a@b\0.de", "\ud800@b.de", "\u202ea@b.de", "a@xn--a.de", "a@ab--c.de",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidAddress):
        parse(text)


def test_an_address_may_have_254_characters_and_no_more() -> None:
    assert len(_LONGEST) == LENGTH_MAX == 254
    assert parse(_LONGEST).key == _LONGEST
    assert parse(f"{' ' * 300}{_LONGEST}").text == _LONGEST
    with pytest.raises(InvalidAddress, match="at most 254 characters, but has 255"):
        parse(f"{_LONGEST}x")


@pytest.mark.parametrize(
    "text", ["secret-name@", "secret-name", "secret-name@secret..name", f"{'secret-name' * 40}@b.de"]
)
def test_the_sentence_does_not_repeat_the_address(text: str) -> None:
    with pytest.raises(InvalidAddress) as refusal:
        parse(text)
    assert "secret" not in refusal.value.sentence
