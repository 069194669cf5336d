"""The plans that PostgreSQL may make: a test takes some away, to see that nothing relies on the luck of one."""

from urllib.parse import quote

import pytest

from tests.conftest import Servers, forget_everything

_KINDS = ("indexscan", "indexonlyscan", "bitmapscan", "nestloop", "mergejoin")


def use_no_index(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every connection from here on read tables as their rows lie."""
    options = quote(" ".join([*(f"-c enable_{kind}=off" for kind in _KINDS), "-c enable_seqscan=on"]))
    monkeypatch.setenv("DATABASE_URL", f"{servers.database_url}?options={options}")
    forget_everything()
