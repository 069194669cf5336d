"""Names: what is one, and the sentence for each way not to be one."""

import pytest

from app.errors import Refused
from app.values.texts import checked_name


@pytest.mark.parametrize("name", ["A", "x" * 255, "Søren 雨", "Two\nlines", "A\u00a0b"])
def test_a_name_comes_back_without_the_blanks_around_it(name: str) -> None:
    assert checked_name("The name", f" \t{name}\n") == name


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "The name must have 1 to 255 characters, but has 0."),
        (" \u3000\t", "The name must have 1 to 255 characters, but has 0."),
        ("x" * 256, "The name must have 1 to 255 characters, but has 256."),
        ("a\0b", "The name must not contain a NUL character."),
        ("M\udcfcller", "The name is not in UTF-8."),
    ],
)
def test_what_is_no_name_is_refused_with_what_is_wrong(name: str, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        checked_name("The name", name)
    assert refused.value.sentence == sentence
