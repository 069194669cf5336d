"""The forms of *Send*, of taking points back, and of a day and a time in the member's zone."""

import re
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Self

from flask_wtf import FlaskForm
from flask_wtf.file import FileField
from wtforms import BooleanField, HiddenField, RadioField, SelectChoice, SelectField, StringField, TextAreaField
from wtforms.validators import DataRequired, Optional, Regexp, ValidationError

from app.batches.fields import AMOUNT, LABEL
from app.console.blueprints import current_zone
from app.console.forms import amount_of, by_rules, say_beside, typed, whole_number
from app.console.sending import late_sentence
from app.recipient_files.columns import AMOUNT as AMOUNT_NAMES
from app.recipient_files.columns import NOT_USED, Chosen
from app.recipient_files.pasted import one_a_line
from app.recipient_files.text import INCLUDE, LEAVE_OUT
from app.settings import INT64_MAX
from app.uploads.uploads import Details, Terms, UploadRow
from app.values.timestamps import bounds_fault
from app.values.zones import local_moment, moment_of

_PASTED = "the pasted list"
_NAME_LENGTH_MAX = 100
_DAY, _CLOCK = re.compile("2[0-9]{3}-[0-9]{2}-[0-9]{2}"), re.compile("([01]?[0-9]|2[0-3]):([0-5][0-9])")


class MomentForm(FlaskForm):
    """A moment, as a browser's fields for a day and a time send it."""

    day = typed("Day")
    clock = typed("Time")

    @staticmethod
    def fields_of(moment: datetime | None) -> dict[str, str]:
        """Return what the fields show for a moment; nothing for None."""
        if moment is None:
            return {}
        local = local_moment(current_zone(), moment)
        return {"day": f"{local:%Y-%m-%d}", "clock": f"{local:%H:%M}"}

    def or_at(self, moment: datetime | None) -> Self:
        """Return the form, which shows a moment before anything is typed."""
        return self if self.is_submitted() else type(self)(data=self.fields_of(moment))

    def moment(self) -> datetime | None:
        """Return the moment in UTC; None, and a sentence beside a field, if there is none."""
        day, clock = _day(self.day.data or ""), _CLOCK.fullmatch(self.clock.data or "")
        if day is None:
            say_beside(self.day, "Enter a day of the calendar, such as 2026-01-31.")
        if clock is None:
            say_beside(self.clock, "Enter a time from 00:00 to 23:59, such as 09:30.")
        if day is None or clock is None:
            return None
        try:
            return moment_of(current_zone(), day, time(int(clock[1]), int(clock[2])))
        except ValueError as error:
            say_beside(self.clock, str(error))
            return None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _check_points(_form: FlaskForm, field: StringField) -> None:
    if not 1 <= (amount_of(field.data) or 0) <= INT64_MAX:
        raise ValidationError(f"{field.label.text} must be a whole number of at least 1.")


def _place(text: str | int | None) -> int | None:
    return None if text in ("", None) else int(text)


class _DetailsForm(FlaskForm):
    amount = typed("Points for each recipient", Optional(), whole_number, by_rules(AMOUNT, read=amount_of))
    label = typed("Label", Optional(), by_rules(LABEL))

    def details(self) -> Details:
        """Return what the fields say that are filled in rightly."""
        good = {field.name: field.data for field in (self.amount, self.label) if not field.errors}
        return Details(amount=amount_of(good.get("amount")), label=good.get("label") or None)

    def faulty(self) -> dict[str, str]:
        """Return what was typed into the fields that are filled in wrongly."""
        return {field.name: field.data for field in (self.amount, self.label) if field.errors}


class ListForm(_DetailsForm):
    """A new list: a file, or pasted addresses."""

    file = FileField("A file")
    pasted = TextAreaField("Or paste the addresses")

    def content(self) -> tuple[bytes, str] | None:
        """Return the list and its name; None, and a sentence beside the field, if there is not exactly one list."""
        pasted, file = self.pasted.data or "", self.file.data
        if file and pasted.strip():
            say_beside(self.pasted, "Choose a file or paste addresses, not both.")
        elif file:
            own = file.filename.rpartition("/")[2].rpartition("\\")[2]
            name = "".join(filter(str.isprintable, own))
            return file.read(), name[-_NAME_LENGTH_MAX:] or "the file"
        elif pasted.strip():
            return one_a_line(pasted).encode(), _PASTED
        else:
            say_beside(self.file, "Choose a file, or paste addresses below.")
        return None


class CheckAgainForm(_DetailsForm):
    """The settings of an uploaded list that can be changed; `offer` gives it what there is to choose from."""

    sheet = RadioField("Which sheet is to be sent?", validators=[Optional()])
    hidden_rows = RadioField(
        "What becomes of the rows that are hidden in the workbook?",
        choices={INCLUDE: "They get points, like the others", LEAVE_OUT: "They are left out"},
        validators=[Optional()],
    )
    column = RadioField("Which column holds the addresses to pay?", coerce=int, validators=[Optional()])
    amount_column = SelectField("Column of points", coerce=_place)
    reference_column = SelectField("Column of references", coerce=_place)
    label_column = SelectField("Column of labels", coerce=_place)

    def validate_amount_column(self, field: SelectField) -> None:
        if self.amount.data and field.data is not None and field.data != NOT_USED:
            raise ValidationError("Choose a column of points, or enter the points for each recipient, not both.")

    def offer(self, findings: Mapping[str, Any]) -> None:
        """Offer the sheets and columns that a list has, and those that may be meant."""
        self.sheet.choices = [(name, title) for name, title in findings.get("sheets", [])]
        self.column.choices = [(place, title) for place, title, _ in findings.get("choices", [])]
        titles = [(place, title) for place, title in findings.get("titles", [])]
        for use in Chosen._fields:
            usual = " or ".join(f"“{heading}”" for heading in (AMOUNT_NAMES if use == "amount" else [use]))
            self[f"{use}_column"].choices = [("", f"{usual}, if there is one"), (NOT_USED, "none"), *titles]

    def details_of(self, upload: UploadRow) -> Details:
        """Return what the form says; the columns of another sheet are others."""
        chosen = {"sheet": self.sheet.data, "hidden_rows": self.hidden_rows.data, "column": self.column.data}
        chosen |= {f"{use}_column": self[f"{use}_column"].data for use in Chosen._fields}
        chosen = chosen if self.sheet.data == upload.sheet else {"sheet": self.sheet.data}
        return self.details()._replace(**chosen)


class TermsForm(MomentForm):
    """How a list is to be issued."""

    when = RadioField(
        "When", choices=[SelectChoice("now", "Now"), SelectChoice("later", "At a later time")], default="now"
    )
    atomic = BooleanField("All or nobody: if the balance cannot pay everybody, issue nothing")

    @classmethod
    def of(cls, upload: UploadRow) -> dict[str, Any]:
        """Return what the fields show for a list."""
        when = "now" if upload.send_at is None else "later"
        return {"when": when, "atomic": upload.atomic, **cls.fields_of(upload.send_at)}

    def terms(self, now: datetime) -> Terms | None:
        """Return what the form says; None, and a sentence beside a field, if a part of it is missing or wrong.

        Args:
            now: the time in the mode of the page.
        """
        if self.when.data == "now":
            return Terms(None, self.atomic.data)
        moment = self.moment()
        fault = None if moment is None else bounds_fault(moment, now=now)
        if fault is not None:
            say_beside(self.day, late_sentence(fault))
        return None if moment is None or fault is not None else Terms(moment, self.atomic.data)


class IssueForm(FlaskForm):
    """The last step. `seen` has the digests of what the page showed to the member."""

    seen = HiddenField(validators=[Regexp("^[0-9a-f]+$")])
    again = HiddenField()


class RefillForm(FlaskForm):
    """Points for the balance of the sandbox."""

    amount = typed("Points to add", _check_points)


class TakeBackForm(FlaskForm):
    """A reversal: its reason, and the points to take from each recipient, if not all.

    The form's id is the reversal's idempotency key. `seen` is what the page showed.
    """

    seen = HiddenField()
    amount = typed("Points from each", Optional(), _check_points)
    reason = typed("Reason", DataRequired("Enter a reason: it is kept with the reversal."))
