"""`GET /docs`: the page comes whole from the service, as what it is, and under a policy that admits nothing else."""

import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from app.api import docs
from tests.unit.answers import errors_of

_PARTS = sorted(path.name for path in (Path(docs.__file__).parent / "page").iterdir())
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def test_the_page_is_html_whatever_accept_says(client: FlaskClient) -> None:
    response = client.get("/docs", headers={"Accept": "application/json"})
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert response.get_data(as_text=True).startswith("<!doctype html>")


@pytest.mark.parametrize("name", _PARTS)
def test_each_part_is_served_as_what_it_is_and_says_how_it_may_be_used(client: FlaskClient, name: str) -> None:
    response = client.get(f"/docs/{name}")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == f"{_TYPES[name.rsplit('.')[1]]}; charset=utf-8"
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"https?:|unsafe|\*|data:", policy)
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Cache-Control"] == "no-store, private"


@pytest.mark.parametrize(
    "name", ["__init__.py", "..%2f__init__.py", "%2e%2e/__init__.py", "page.html", "main.js/", "x"]
)
def test_nothing_else_of_the_folder_is_served(client: FlaskClient, name: str) -> None:
    assert list(errors_of(client.get(f"/docs/{name}"), 404)) == ["path"]


@pytest.mark.parametrize("name", _PARTS)
def test_no_part_names_another_address(name: str) -> None:
    text = (Path(docs.__file__).parent / "page" / name).read_text(encoding="utf-8")
    # The name of the language of the icon is not an address that anything is read from.
    assert not re.search(r"https?://|[\"'(]//", text.replace("http://www.w3.org/2000/svg", ""))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


@pytest.mark.parametrize("name", _PARTS)
def test_the_key_is_stored_nowhere(name: str) -> None:
    text = (Path(docs.__file__).parent / "page" / name).read_text(encoding="utf-8")
    assert not re.search(r"localStorage|sessionStorage|indexedDB|cookie|history\.|serviceWorker", text)
