"""The result beside a list: it stops whoever would be paid twice, and is never taken for none."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.unit.paying_front import PayingFront, result_of, rows_of

ANN, BOB, CY = _EMAILS = ("ann@example.com", "bob@example.com", "cy@example.com")
_LIST = f"email,amount,reference,label\n{ANN},5,A-1,May\n{ANN},6,A-2,\n{BOB},7,,\n"
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


def test_a_result_that_is_a_link_to_nowhere_is_not_taken_for_none(front: PayingFront, people: Path) -> None:
    front.run(people, "--amount", "10")
    result_of(people).rename(people.with_name("elsewhere.csv"))
    result_of(people).symlink_to(people.with_name("away.csv"))
    _write(people, [*_EMAILS, _NEW])
    assert "is a link to a file that is not there" in front.run(people, "--amount", "10").told
    assert front.paid == list(_EMAILS)


def test_a_list_is_the_same_through_a_link(front: PayingFront, people: Path, tmp_path: Path) -> None:
    front.run(people, "--amount", "10")
    _write(people, [*_EMAILS, _NEW])
    (tmp_path / "other").mkdir()
    (link := tmp_path / "other" / "list.csv").symlink_to(people)
    assert "3 of its recipients were paid then" in front.run(link, "--amount", "10").told
    assert front.paid == list(_EMAILS)


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


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("6,A-2", "60,A-2", "Line 3 of people.csv has 60 points, but had 6, and what was sent cannot be changed."),
        (f"{BOB},7,,\n", f"{BOB},7,,\n{CY},8,,\n", "3 of its recipients were paid then with this label, or may"),
        (f"{BOB},7,,\n", f"{BOB},70,,\n{CY},8,,\n", "3 of its recipients were paid then with this label, or may"),
        (f"{ANN},6,A-2", f"{CY},6,A-2", "3 of its recipients were paid then"),
        ("A-2", "", "2 of its recipients were paid then"),
        ("A-1", "B-1", "2 of its recipients were paid then"),
        (",May", ",", "2 of its recipients were paid then"),
        (f"{BOB},7,,\n", f"{BOB},7,B-1,\n", "3 of its recipients were paid then"),
        (f"{BOB},7,,\n", f"{BOB},7,,June\n", "3 of its recipients were paid then"),
        (f"{ANN},5,A-1,May\n{ANN},6,A-2,\n", f"{ANN},11,,May\n", "2 of its recipients were paid then"),
    ],
)
def test_a_list_of_items_that_was_changed_since_pays_nobody_again(
    front: PayingFront, people: Path, before: str, after: str, words: str
) -> None:
    people.write_text(_LIST)
    front.run(people)
    assert before in _LIST
    people.write_text(_LIST.replace(before, after))
    done = front.run(people)
    assert (done.status, front.points) == (1, [5, 6, 7])
    assert words in done.told
    assert front.run(people, "--again", "once more").status in (0, 3), "unless that is what is wanted"
    assert len(front.points) > 3


@pytest.mark.parametrize(
    "content",
    [
        f"email,amount,reference\n{ANN},5,A-3\n{ANN},6,A-4\n{BOB},7,B-1\n",
        f"email,amount,label\n{ANN},5,June\n{BOB},7,July\n",
        f"email,amount\n{CY},5\n",
    ],
)
def test_new_references_new_labels_and_new_people_are_new_payments(
    front: PayingFront, people: Path, content: str
) -> None:
    people.write_text(f"email,amount,reference,label\n{ANN},5,A-1,May\n{ANN},6,A-2,May\n{BOB},7,B-0,May\n")
    front.run(people)
    people.write_text(content)
    done = front.run(people)
    assert (done.status, len(front.paid)) == (0, 3 + content.count("@"))


def test_an_erased_user_is_named_and_no_list_for_a_refill_has_the_address(front: PayingFront, people: Path) -> None:
    _write(people, [*_EMAILS, _NEW])
    front.balance, front.erased = 10, {BOB}
    done = front.run(people, "--amount", "10")
    assert [row["reason"] for row in rows_of(result_of(people))] == [
        *("", "the user was erased", "the balance was too low", "the balance was too low")
    ]
    assert [done.document[name] for name in ("debited", "erased", "not_debited")] == [1, 1, 3]
    unpaid = Path(done.document["undebited"])
    assert [row["email"] for row in rows_of(unpaid)] == [CY, _NEW]
    front.erased.add(CY)
    front.run(people, "--amount", "10")
    assert [row["email"] for row in rows_of(unpaid)] == [_NEW], "who was erased since is not in it either"
    shown = front.shown(people, "--amount", "10")
    assert re.search("Erased +2, who are not debited\nNot debited +1: the balance", shown)


def test_who_interrupts_the_last_batch_is_told_of_the_unpaid_and_gets_their_list_from_the_same_command(
    front: PayingFront, people: Path
) -> None:
    front.balance, front.interrupts = 10, 1
    done = front.run(people, "--amount", "10")
    assert [done.document[name] for name in ("sent", "debited", "not_debited", "unanswered")] == [3, 1, 2, 0]
    assert (done.status, done.document["undebited"]) == (1, None)
    assert "give the same command again to carry on" in done.told
    again = front.run(people, "--amount", "10")
    assert again.status == 0
    assert [row["email"] for row in rows_of(Path(again.document["undebited"]))] == [BOB, CY]
