"""Lists of recipients as a member sends them in the console: uploaded, checked, confirmed, and their files read."""

import csv
import re
from io import StringIO

from werkzeug.test import TestResponse

from tests.integration import books
from tests.integration.visitors import Visitor


def upload(
    of: Visitor, content: str | bytes, *, mode: str = "live", file: str = "people.csv", **fields: str
) -> TestResponse:
    """Upload a list as a file; return the answer. The body is written out: Werkzeug leaves a long one open."""
    raw = content.encode() if isinstance(content, str) else content
    parts = [f'name="{name}"\r\n\r\n{text}\r\n'.encode() for name, text in fields.items()]
    own = hidden(of.get(f"/console/{mode}/send"))
    parts += [f'name="{name}"\r\n\r\n{own[name]}\r\n'.encode() for name in ("csrf_token", "form_id")]
    parts += [b'name="file"; filename="%s"\r\n\r\n%s\r\n' % (file.encode(), raw)]
    body = b"".join(b"--edge\r\nContent-Disposition: form-data; " + part for part in parts) + b"--edge--\r\n"
    return of.client.post(f"/console/{mode}/send", data=body, content_type="multipart/form-data; boundary=edge")


def checked(of: Visitor, content: str | bytes, *, mode: str = "live", file: str = "people.csv", **fields: str) -> str:
    """Upload a list; return the path of its check."""
    answer = upload(of, content, mode=mode, file=file, **fields)
    if answer.status_code == 200:  # The page of a long list leads on by itself.
        [path] = re.findall(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)
        return str(path)
    assert answer.status_code == 303, answer.text
    return answer.location


def confirm(of: Visitor, path: str, **fields: str) -> TestResponse:
    """Press the last button of a list, as its page offers it."""
    page = of.get(f"{path}/confirm")
    assert page.status_code == 200, page.text
    return of.client.post(f"{path}/confirm", data=hidden(page) | fields)


def sent(of: Visitor, content: str | bytes, **fields: str) -> str:
    """Send a list, which is issued; return the path of its pages."""
    path = checked(of, content, **fields)
    assert confirm(of, path).status_code == 303
    books.drain_all(of.organization_id)
    return path


def hidden(page: TestResponse) -> dict[str, str]:
    """Return the fields of a page that no member fills in."""
    return dict(re.findall(r'name="(csrf_token|seen|form_id)"[^>]* value="([^"]*)"', page.text))


def rows_of(file: TestResponse) -> list[dict[str, str]]:
    """Return the rows of a CSV that was downloaded."""
    assert file.content_type == "text/csv; charset=utf-8"
    assert file.text.startswith("\ufeff"), "Excel takes it for UTF-8"
    return list(csv.DictReader(StringIO(file.text.removeprefix("\ufeff"))))


def value(statement: str) -> object:
    return books.value(statement)
