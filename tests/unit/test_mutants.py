"""The planted bugs: that each can still be planted. `make mutants` sees that each is caught."""

from pathlib import Path

import pytest

from tests.mutants import MUTANTS, Mutant

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_fits_the_code_as_it_is(mutant: Mutant) -> None:
    texts = {name: (_ROOT / name).read_text() for name, _, _ in mutant.edits}
    for name, sound, broken in mutant.edits:
        assert texts[name].count(sound) == 1, f"{name} holds this {texts[name].count(sound)} times: {sound}"
        texts[name] = texts[name].replace(sound, broken)
        if name.endswith(".py"):
            compile(texts[name], name, "exec")
    assert all((_ROOT / test).exists() for test in mutant.tests)
