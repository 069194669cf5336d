"""The faults of a form, in the words of its page: each stands beside its field, and in a summary at the top."""

from collections.abc import Sequence
from typing import NamedTuple

from wtforms import Field, Form, RadioField, SelectMultipleField

from app import errors


class Fault(NamedTuple):
    """One line of the summary: the sentence, and the id of the control to mend; None: no single one."""

    sentence: str
    target: str | None


def faults_of(forms: Sequence[Form]) -> list[Fault]:
    """Return the faults of the forms of a page, in the order of their fields."""
    found: list[Fault] = []
    for form in forms:
        found += [Fault(sentence, None) for sentence in form.form_errors]
        for field in form:
            found += [Fault(sentence, _target(field)) for sentence in field.errors]
    return found


def in_words(sentence: str, label: str) -> str:
    """Return a sentence of the interface for a person, who sees the label in place of the field's name."""
    return sentence.about(subject(label)) if isinstance(sentence, errors.Fault) else sentence


def subject(label: str) -> str:
    """Return what a sentence about a field begins with: its label, without an addition behind a comma."""
    return label.partition(",")[0]


def _target(field: Field) -> str:
    """Return the id of a field's control; of radio buttons or boxes to tick, that of the first."""
    first = next(iter(field), None) if isinstance(field, RadioField | SelectMultipleField) else None
    return str((first or field).id)
