"""Settings: read once from the environment, and checked at start in sentences that name them."""

import pytest

from app.errors import SettingsError
from app.mail.server import require_public_url
from app.settings import misspelt_settings, settings, without_password


def refusal() -> str:
    """Read settings of which at least one is wrong, and return what is said about them."""
    with pytest.raises(SettingsError) as caught:
        settings()
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("POINTS_RECIPIENTS_MAX", "0", "it must be at least 1"),
        ("POINTS_RECIPIENTS_MAX", "100001", "it must be at most 100000"),
        ("POINTS_RECIPIENTS_MAX", "1.5", "it must be an integer"),
        ("POINTS_AMOUNT_MAX", str(2**63), f"it must be at most {2**63 - 1}"),
        ("POINTS_BODY_BYTES_MAX", "1023", "it must be at least 1024"),
        ("POINTS_DATABASE_CONNECTIONS_MAX", "1001", "it must be at most 1000"),
        ("POINTS_EVENTS_DAYS", "3651", "it must be at most 3650"),
        ("POINTS_AUDIT_EVERY_S", "-1", "it must be at least 0"),
        ("POINTS_WAIT_S", "soon", "it must be a number"),
        ("POINTS_WAIT_S", "601", "it must be at most 600"),
        ("POINTS_KEEP_ALIVE_S", "0", "it must be at least 1"),
        ("POINTS_KEEP_ALIVE_S", "3601", "it must be at most 3600"),
        ("POINTS_ALLOW_REPEATS", "7", "it must be true or false"),
        ("POINTS_LOG_FORMAT", "xml", "it must be 'auto', 'json' or 'text'"),
    ],
)
def test_what_a_setting_must_be_is_said_in_words(
    name: str, text: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    assert refusal() == f"The setting {name} is wrong: {words}, but it is {text!r}."


_WRONG_URLS = {
    "DATABASE_URL": """
        mysql://points:hush@db/points db.example.com/points postgresql://points:hush@db:port/points
        postgresql://points:hush@[::1/points postgresql://points:hush@db/points?schema=public
        postgresql://points:hush@db/points?port=abc postgresql://points:hush℀@db/points
    """,
    "REDIS_URL": """
        redis://:hush@cache/0?bogus=1 redis://:hush@cache?db=abc http://:hush@cache:6379 redis://:hush@cache:port/0
        redis://:hush@cache:6379/notanumber rediss://:hush@cache:6379/0/1 redis://:hush@[::1 redis://:hush℀@cache
        amqp://points:hush@rabbit sentinel://:hush@watch1:26379,watch2:26379/0
        sentinel://:hush@watch1:port/0?master=points sentinel://:hush@watch1:26379,/0?master=points
    """,
    "POINTS_BROKER_URL": """
        redis://:hush@cache/0?bogus=1 redis://:hush@cache:6379/points redis://:hush℀@cache amqp://points:hush℀@rabbit
        sqs://points:hush@rabbit amqp://points:hush@rabbit:port sentinel://:hush@watch1:26379
    """,
    "POINTS_SMTP_URL": """
        http://points:hush@mail smtp://points:hush@mail smtp://:hush@ smtps://points:hush@mail:port
        smtps://points:hush@mail?starttls smtps://points:hush@mail/in smtp://points:hush@mail?tls smtp://mail log
    """,
}


@pytest.mark.parametrize(
    ("name", "url"), [(name, url) for name, urls in _WRONG_URLS.items() for url in ["", *urls.split()]]
)
def test_a_wrong_url_is_named_without_its_password(name: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, url)
    sentence = refusal()
    assert sentence.startswith(f"The setting {name} is wrong: ")
    assert "hush" not in sentence


_MAIL_URLS = """
    log: smtp://mail smtp://mail.example.com:2525 smtp://u:hush@mail?starttls smtps://u%40x:hush@mail:465
    smtp://u:hush@127.0.0.1:2525
"""


@pytest.mark.parametrize("url", _MAIL_URLS.split())
def test_mail_needs_a_server_and_whom_it_comes_from(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_SMTP_URL", url)
    monkeypatch.setenv("POINTS_MAIL_FROM", "Points, of Acme")
    assert refusal().startswith("The setting POINTS_MAIL_FROM is wrong: it must be an e-mail address")
    for sender in ("points@example.com", "Points <points@example.com>"):
        monkeypatch.setenv("POINTS_MAIL_FROM", sender)
        settings.cache_clear()
        assert (settings().smtp_url, settings().mail_from) == (url, sender)
        assert "hush" not in repr(settings())
    with pytest.raises(SettingsError, match="POINTS_PUBLIC_URL is missing: links in mail begin with it"):
        require_public_url()


_NOT_MISSPELT = """
    POINTS_WAIT_S points_wait_s POINTS_KEY POINTS_DATA_DIR RATE_LIMT POINTS_PORT POINTS_SERVICE_HOST
    POINTS_PORT_8000_TCP_ADDR POINTS_SERVICE_PORT_HTTP
"""


@pytest.mark.parametrize("name", _NOT_MISSPELT.split())
def test_a_setting_and_what_is_somebody_else_s_are_not_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert list(misspelt_settings()) == []


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL"])
def test_a_missing_address_of_a_server_is_named_with_a_way_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name)
    assert refusal() == f"The setting {name} is missing. Set it, or start the service with `points up`."


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_a_postgresql_url_means_one(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{scheme}://points:hush@db:5432/points?sslmode=require")
    assert settings().database_url == "postgresql://points:hush@db:5432/points?sslmode=require"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://points:hush@db:5432/points", "postgresql://points:***@db:5432/points"),
        ("postgresql://points:hu@sh@db/points", "postgresql://points:***@db/points"),
        ("redis://:hush@cache:6379/0", "redis://:***@cache:6379/0"),
        ("postgresql://points@db/points", "postgresql://points@db/points"),
        ("redis://cache:6379/0", "redis://cache:6379/0"),
        ("postgresql://db/points?user=points&password=hush", "postgresql://db/points?user=points&password=***"),
        ("sentinel://:hush@w1:1,w2:2/0?master=m", "sentinel://:***@w1:1,w2:2/0?master=m"),
        ("sentinel://w1:1/0?master=m&sentinel_password=hush", "sentinel://w1:1/0?master=m&sentinel_password=***"),
        ("redis://cache:6379/0?password=hush", "redis://cache:6379/0?password=***"),
    ],
)
def test_a_password_is_shown_as_three_stars(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize("given", ["10.0.0.1/8", "10.0.0.0/33", "example.com", "10.0.0.0/8;::1/128"])
def test_what_webhooks_may_lead_to_is_a_list_of_networks(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("POINTS_WEBHOOK_ALLOW", given)
    settings.cache_clear()
    with pytest.raises(SettingsError, match="POINTS_WEBHOOK_ALLOW is wrong: it must be networks"):
        settings()


@pytest.mark.parametrize("given", ["secret", "c2hvcnQ=", f"{'A' * 43}=,short", "ü" * 44])
def test_a_wrong_key_for_secrets_is_named_and_not_repeated(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("POINTS_SECRETS_KEY", given)
    settings.cache_clear()
    with pytest.raises(SettingsError, match="POINTS_SECRETS_KEY is wrong: each key must be") as wrong:
        settings()
    assert given not in str(wrong.value)
