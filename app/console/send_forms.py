"""The forms of *Send*, and of taking points back."""

from flask_wtf import FlaskForm
from flask_wtf.file import FileField
from wtforms import HiddenField, RadioField, StringField, TextAreaField
from wtforms.validators import DataRequired, Optional, Regexp, ValidationError

from app.batches.fields import AMOUNT, LABEL
from app.console.forms import say_beside, stripped
from app.recipient_files.pasted import one_a_line
from app.settings import settings
from app.uploads.uploads import Asked

_PASTED = "the pasted list"
_NAME_LENGTH_MAX = 100


def _check_amount(_form: FlaskForm, field: StringField) -> None:
    number = amount_of(field.data)
    sentence = "Enter a whole number, digits only." if number is None else AMOUNT.fault(number, settings())
    if sentence is not None:
        raise ValidationError(sentence)


def _check_label(_form: FlaskForm, field: StringField) -> None:
    if (sentence := LABEL.fault(field.data, settings())) is not None:
        raise ValidationError(sentence)


def amount_of(text: str | None) -> int | None:
    """Return a number in ASCII digits; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 19 else None


class _AskedForm(FlaskForm):
    amount = StringField("Points for each recipient", filters=[stripped], validators=[Optional(), _check_amount])
    label = StringField("Label", filters=[stripped], validators=[Optional(), _check_label])

    def asked(self, *, sheet: str | None = None, column: int | None = None) -> Asked:
        return Asked(sheet, column, amount_of(self.amount.data), self.label.data or None)


class ListForm(_AskedForm):
    """A new list: a file, or pasted addresses."""

    file = FileField("A file")
    pasted = TextAreaField("Or paste the addresses")

    def content(self) -> tuple[bytes, str] | None:
        """Return the list and its name; None, and a sentence beside the field, if there is not exactly one list."""
        pasted, file = self.pasted.data or "", self.file.data
        if file and pasted.strip():
            say_beside(self.pasted, "Choose a file or paste addresses, not both.")
        elif file:
            name = "".join(one for one in file.filename.rpartition("/")[2].rpartition("\\")[2] if one.isprintable())
            return file.read(), name[-_NAME_LENGTH_MAX:] or "the file"
        elif pasted.strip():
            return one_a_line(pasted).encode(), _PASTED
        else:
            say_beside(self.file, "Choose a file, or paste addresses below.")
        return None


class CheckAgainForm(_AskedForm):
    """The settings of an uploaded list that can be changed; the page sets the choices of `sheet` and `column`."""

    sheet = RadioField("Which sheet is to be sent?", validators=[Optional()])
    column = RadioField("Which column holds the addresses to pay?", coerce=int, validators=[Optional()])


class IssueForm(FlaskForm):
    """The last step. `seen` is the digest of what the page has shown to the member."""

    seen = HiddenField(validators=[Regexp("^[0-9a-f]{64}$")])
    again = HiddenField()


class TakeBackForm(FlaskForm):
    """The reason of a reversal. The form's id is the reversal's idempotency key."""

    reason = StringField(
        "Reason", filters=[stripped], validators=[DataRequired("Enter a reason: it is kept with the reversal.")]
    )
