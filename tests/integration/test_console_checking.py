"""The page of a long list tells how far its check is, and a list in parts how far its issue is."""

import re

import pytest
from flask import Flask

from app.console import checking as console_checking
from app.recipient_files import checking
from app.uploads import uploads
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.test_console_send import checked, confirm, hidden, upload, value
from tests.integration.visitors import Visitor, visitor, words_of

pytestmark = pytest.mark.usefixtures("database", "broker")

_SEVEN = "email\n" + "".join(f"p{number}@example.com\n" for number in range(7))


@pytest.fixture
def ann(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    """Sign in a sender to whom three lines are a long list, and two recipients a batch."""
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    monkeypatch.setattr(checking, "TOLD_EVERY_LINES", 3)
    return visitor(app, books.make_organization(1_000), "sender")


def test_a_long_list_is_told_line_by_line_and_leads_on_by_itself(ann: Visitor) -> None:
    page = upload(ann, _SEVEN, amount="5")
    assert page.status_code == 200
    assert [int(line) for line in re.findall(r'<progress max="\d+" value="(\d+)"', page.text)] == [3, 7]
    assert page.text.rstrip().endswith("</html>")
    [check] = re.findall(r'http-equiv="refresh" content="0; url=([^"]+)"', page.text)
    assert f'href="{check}">Go on to the check' in page.text
    assert "Recipients 7" in words_of(ann.get(check))
    again = ann.client.post(check, data=hidden(ann.get(check)) | {"amount": "6"})
    assert (again.status_code, f'href="{check}">Go on to the check' in again.text) == (200, True)
    assert "Points in all 42" in words_of(ann.get(check))


def test_a_long_list_with_a_fault_says_so_where_it_was_checked_and_is_not_kept(
    ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_checking, "PARTS_MAX", 3)
    page = upload(ann, _SEVEN, amount="5")
    assert "Nothing was kept of this check. People.csv has 7 recipients; one list may have at most 6." in words_of(page)
    assert "refresh" not in page.text
    assert value("SELECT count(*) FROM uploads") == 0
    monkeypatch.setattr(console_checking, "PARTS_MAX", 100)
    assert "Go on to the check" in upload(ann, _SEVEN, amount="5").text, "the next one has its turn"


def test_a_check_that_failed_is_not_called_done(ann: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(uploads, "judge", fail)
    told: list[bytes] = []
    steps = upload(ann, _SEVEN, amount="5").iter_encoded()
    with pytest.raises(RuntimeError):
        told += iter(lambda: next(steps), None)
    whole = b"".join(told).decode()
    assert "It is not known whether the list was kept" in whole
    assert "refresh" not in whole
    assert whole.rstrip().endswith("</html>")


def test_a_batch_and_its_list_show_how_much_of_the_list_is_done(ann: Visitor) -> None:
    path = checked(ann, _SEVEN, amount="5")
    assert confirm(ann, path).status_code == 303
    assert "0 of 7 recipients, 0 of 4 batches" in words_of(ann.get(f"{path}/outcome"))
    first, last = value("SELECT min(id) FROM batches"), value("SELECT max(id) FROM batches")
    assert "It is part 4 of the 4 of its list, which are issued in order; 0 of them are done." in words_of(
        ann.get(f"/batches/{last}")
    )
    books.drain_all(ann.organization_id)
    assert "of its list" not in words_of(ann.get(f"/batches/{first}"))
