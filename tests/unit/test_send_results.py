"""The result beside a list: it stops whoever would be paid twice, and is never taken for none."""

import errno
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.unit.paying_front import PayingFront, result_of, rows_of

_EMAILS = ("ann@example.com", "bob@example.com", "cy@example.com")
_NEW = "new@example.com"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return _write(tmp_path / "people.csv", _EMAILS)


def _write(path: Path, emails: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in ("email", *emails)))
    return path


def _retyped(before: bytes, after: bytes) -> Callable[[bytes], bytes]:
    def damage(content: bytes) -> bytes:
        assert before in content
        return content.replace(before, after)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        _retyped(b"2026-03", b"Mar-26"),
        _retyped(b" 007", b" 7"),
        _retyped("Frühling".encode(), "Frühling".encode("cp1252")),
        _retyped(b",10,yes", b",10.00,yes"),
        _retyped(b",no,7,", b",No,7,"),
        _retyped(b"idempotency_key", b"Idempotency Key"),
        _retyped(b",", b";"),
        _retyped(b"\r\n", b"\n"),
        _retyped(b"ann@example.com,", b'"ann@example.com",'),
        lambda content: b"\xef\xbb\xbf" + content,
        lambda content: content.decode().encode("utf-16"),
        lambda content: b"sep=,\r\n" + content,
        lambda content: content + b",,,,,,,,,,,,,,,\r\n",
        lambda content: content[:-1],
        lambda content: content[: content.rindex(b"cy@")],
        lambda content: b"".join(content.splitlines(keepends=True)[:1]),
        lambda content: b"".join(content.splitlines(keepends=True)[:-1]),
        lambda content: b"".join(sorted(content.splitlines(keepends=True), reverse=True)),
        lambda content: content + b"".join(content.splitlines(keepends=True)[1:]),
        lambda _: b"",
        lambda _: b"PK\x03\x04" + bytes(100),
        lambda _: b"email,name\r\nann@example.com,Ann\r\n",
    ],
)
def test_a_result_that_is_not_ours_to_the_letter_stops_the_send(
    front: PayingFront, people: Path, damage: Callable[[bytes], bytes]
) -> None:
    label = "2026-03 007 Frühling"
    assert front.run(people, "--amount", "10", "--label", label).status == 0
    before = result_of(people).read_bytes()
    result_of(people).write_bytes(damage(before))
    _write(people, [*_EMAILS, _NEW])
    done = front.run(people, "--amount", "10", "--label", label)
    assert done.status == 1
    assert "people.result.csv is not as `points send` has written it" in done.told
    assert front.paid == list(_EMAILS)
    result_of(people).write_bytes(before)
    assert "3 of its recipients were paid then" in front.run(people, "--amount", "10", "--label", label).told


@pytest.mark.parametrize(
    ("options", "is_alike"),
    [
        ((), True),
        (("--amount", "5"), False),
        (("--label", "May"), False),
        (("--label", ""), True),
        (("--again", "May"), False),
        (("--atomic",), True),
    ],
)
def test_a_list_that_was_changed_since_pays_nobody_twice_with_the_same_amount_and_label(
    front: PayingFront, people: Path, options: Sequence[str], is_alike: bool
) -> None:
    front.run(people, "--amount", "10")
    _write(people, [*_EMAILS[::-1], _NEW])
    done = front.run(people, "--amount", "10", *options)
    assert ("3 of its recipients were paid then" in done.told) is is_alike
    assert done.status == is_alike
    assert len(front.paid) == (3 if is_alike else 7)


def test_offered_list_pays_the_unpaid_recipients(front: PayingFront, people: Path) -> None:
    front.balance = 0
    first = front.run(people, "--amount", "10")
    assert (first.status, first.document["not_debited"]) == (0, 3)
    front.balance = 10
    again = front.run(people, "--amount", "10")
    assert (again.document["not_debited"], again.document["undebited"]) == (3, first.document["undebited"])
    second = front.run(Path(first.document["undebited"]), "--amount", "10")
    assert (second.document["debited"], second.document["not_debited"]) == (1, 2)
    assert Path(second.document["undebited"]).name == "people.undebited-2.csv"
    front.balance = 1_000
    third = front.run(Path(second.document["undebited"]), "--amount", "10")
    assert (third.document["debited"], third.document["undebited"]) == (2, None)
    assert front.paid == list(_EMAILS)
    for path in (people, Path(first.document["undebited"]), Path(second.document["undebited"])):
        front.run(path, "--amount", "10")
    assert front.paid == list(_EMAILS), "however often they are given again"
    _write(people, [*_EMAILS, _NEW])
    assert (
        "3 of its recipients were paid then with this amount and label, or may have been"
        in front.run(people, "--amount", "10").told
    )


def test_no_cell_of_a_result_is_taken_for_a_formula_by_a_spreadsheet(front: PayingFront, people: Path) -> None:
    emails = ["+49170@sms.example.com", '"=HYPERLINK(""http://x"")"', "@ann", "-1", "a\tb"]
    _write(people, emails)
    done = front.run(people, "--amount", "10", "--label", "=1+1", "--again", "-May")
    assert (done.status, front.paid) == (3, emails[:1])
    rows = rows_of(result_of(people))
    assert [row["email"] for row in rows] == [f"'{emails[0]}", '\'=HYPERLINK("http://x")', "'@ann", "'-1", "a b"]
    assert (rows[0]["label"], rows[0]["again"]) == ("'=1+1", "'-May")
    assert not re.search(rb"(^|,|\n)\"?[=+\-@]", result_of(people).read_bytes())
    again = front.run(people, "--amount", "10", "--label", "=1+1", "--again", "-May")
    assert again.document["replayed_batches"] == 1
    _write(people, [emails[0], _NEW])
    assert "1 of its recipients were paid then" in front.run(people, "--amount", "10", "--label", "=1+1").told


@pytest.mark.parametrize("spelling", ["people.csv", "./people.csv", "folder/../people.csv", "link.csv"])
def test_the_result_never_replaces_the_list_however_it_is_called(
    front: PayingFront, people: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    monkeypatch.chdir(people.parent)
    Path("folder").mkdir()
    Path("link.csv").symlink_to(people)
    done = front.run(people, "--amount", "1", "--result", spelling)
    assert "would replace the file itself" in done.told
    assert front.paid == []


def test_a_list_on_a_folder_without_locks_is_sent_from_a_copy_with_the_result_it_has(
    front: PayingFront, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert front.run(people, "--amount", "10").status == 0

    def without_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as network:
        network.setattr("fcntl.flock", without_locks)
        refused = front.run(people, "--amount", "10")
    assert refused.status == 1
    assert f"(No locks available). Copy it to a local folder, and send the copy with --result {result_of(people)}," in (
        refused.told
    )
    (tmp_path / "local").mkdir()
    copy = Path(shutil.copy(people, tmp_path / "local"))
    assert front.run(copy, "--amount", "10", "--result", str(result_of(people))).status == 0
    assert front.paid == list(_EMAILS)
