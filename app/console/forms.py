"""The short forms. Each is protected against forgery, and blanks around its texts are removed."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flask_wtf import FlaskForm
from wtforms import (
    Field,
    Form,
    HiddenField,
    PasswordField,
    RadioField,
    SelectChoice,
    SelectField,
    SelectMultipleField,
    StringField,
    ValidationError,
)
from wtforms.form import BaseForm
from wtforms.validators import DataRequired, InputRequired, Length, StopValidation
from wtforms.widgets import CheckboxInput, ListWidget

from app.batches.approval import REASON_LENGTH_MAX
from app.errors import Fault, InvalidRequest, PointsError, Refused
from app.events.event_types import ANSWERED, AWAITING, LATER, LINK, LOW_BALANCE, TYPES
from app.fields import field as fields
from app.fields.bounds import read_bounds
from app.fields.kinds import EMAIL
from app.members.members import ADMIN, APPROVER, SENDER, VIEWER
from app.organizations import SETTING_LABELS
from app.platform.requests import CHANGEABLE
from app.settings import settings
from app.values.key_bounds import APPROVE, READ, REVERSE, SEND, WEBHOOKS, Bounds
from app.values.numbers import figure_of, figures_apart
from app.values.texts import checked_name
from app.values.validation_errors import FaultsFound
from app.values.zones import zone_names

ROLE_WORDS = {
    VIEWER: "viewer: can only look",
    SENDER: "sender: can also send, cancel and take back",
    APPROVER: "approver: can also approve what others have sent",
    ADMIN: "admin: can also manage members, keys and webhooks",
}

SCOPE_WORDS = {
    READ: "read: batches, transactions, reversals, events, requests and the statement",
    SEND: "send: verify, send, move and cancel; also hold longer, and change the sandbox",
    REVERSE: "reverse: take points back",
    WEBHOOKS: "webhooks: make, change and delete them",
    APPROVE: "approve: approve or reject what others have sent",
}


MAIL_WORDS = {
    AWAITING: "something awaits your approval (approvers and admins)",
    ANSWERED: "what you sent was approved or rejected, or nobody answered in time",
    LATER: "what you scheduled was issued or refused",
    LOW_BALANCE: "the balance is low (admins)",
    LINK: "somebody made a link with which you choose a password",
}


def stripped(text: str | None) -> str | None:
    return text.strip() if text else text


def typed(label: str, *validators: Any) -> StringField:
    """Return a field for a text."""
    return StringField(label, filters=[stripped], validators=validators)


def say_beside(field: Field, sentence: str) -> None:
    """Show a sentence beside a field."""
    field.errors = [*field.errors, sentence]


def say_of_form(form: BaseForm, sentence: str) -> None:
    """Show a sentence that is about no single field of a form."""
    form.form_errors = [*form.form_errors, sentence]


def say_why(form: BaseForm, error: PointsError, names: Mapping[str, str] | None = None) -> None:
    """Show why a form was not taken: each fault beside its field.

    Args:
        names: the names in this form of fields that have another name in the interface.
    """
    if not isinstance(error, InvalidRequest):
        say_of_form(form, error.sentence)
        return
    for key, sentences in error.faults.items():
        name = key.partition(".")[0]
        own = (names or {}).get(name, name)
        for sentence in sentences:
            if own in form:
                say_beside(form[own], in_words(sentence, form[own].label.text))
            else:
                say_of_form(form, sentence)


def amount_of(text: str | None, *, digits_max: int = 19) -> int | None:
    """Return a number that was typed; None for anything else."""
    return figure_of(text or "", digits_max=digits_max)


class SignInForm(FlaskForm):
    email = typed("E-mail address", DataRequired("Enter your e-mail address."))
    password = PasswordField("Password", validators=[InputRequired("Enter your password.")])


class CodeForm(FlaskForm):
    """A code of the second factor. `sealed` is the encrypted secret of one that is being turned on."""

    code = typed("Code", InputRequired("Enter a code."))
    sealed = HiddenField()


class ChoosePasswordForm(FlaskForm):
    password = PasswordField("New password", validators=[InputRequired("Choose a password.")])
    again = PasswordField("The same again", validators=[InputRequired("Enter the password a second time.")])


class ChangePasswordForm(ChoosePasswordForm):
    current = PasswordField("Current password", validators=[InputRequired("Enter your current password.")])


def by_rules(
    of: fields.Field[Any], *, read: Callable[[str], Any] = str, about: str | None = None
) -> Callable[[Form, Field], None]:
    """Return a validator by the rules of a field of the interface; `about` is its subject, if not the label."""

    def check(_form: Form, field: Field) -> None:
        if (fault := of.fault(read(field.data), settings())) is not None:
            raise ValidationError(in_words(fault, about or field.label.text))

    return check


def whole_number(_form: Form, field: Field) -> None:
    """Check that a text is a number, which rules can then judge."""
    if amount_of(field.data) is None:
        raise StopValidation(f"{field.label.text} must be a whole number, such as 1000 or 1,000.")


def _check_name(_form: Form, field: Field) -> None:
    try:
        checked_name(subject(field.label.text), field.data or "", may_be_blank=True)
    except Refused as error:
        raise ValidationError(error.sentence) from None


class MemberForm(FlaskForm):
    email = typed("E-mail address", DataRequired("Enter an e-mail address."), by_rules(EMAIL, about="What you typed"))
    first_name = typed("First name", DataRequired("Enter a first name."), _check_name)
    last_name = typed("Last name", _check_name)
    role = SelectField("Role", choices=ROLE_WORDS)


class RejectForm(FlaskForm):
    reason = typed(
        "Reason",
        DataRequired("Enter a reason: the sender sees it."),
        Length(max=REASON_LENGTH_MAX, message=f"Enter at most {REASON_LENGTH_MAX} characters."),
    )


class KeyForm(FlaskForm):
    """A new key. The interface's rules check its bounds, so that all faults are shown at once."""

    name = typed("Name")
    mode = SelectField("Kind", choices={"sandbox": "development (sandbox)", "live": "live (real points)"})
    scopes = SelectMultipleField(
        "What it may do", choices=SCOPE_WORDS, widget=ListWidget(), option_widget=CheckboxInput()
    )
    expires_at = typed("Last day")
    batch_limit = typed("Points of one batch, at most")
    daily_limit = typed("Points of one day, at most")

    def bounds(self) -> Bounds | None:
        """Return the bounds that the form says; None, and a sentence beside a field, if one is wrong."""
        limits, faults = (self.batch_limit, self.daily_limit), FaultsFound()
        fields = {limit.name: amount_of(limit.data) for limit in limits}
        fields |= {"scopes": self.scopes.data or None, "expires_at": self.expires_at.data or None}
        bounds = read_bounds(fields, faults, settings())
        for limit in limits:
            if limit.data and fields[limit.name] is None:
                faults.add(limit.name, Fault(f"The {limit.name}", "must be a whole number, such as 1000 or 1,000."))
        try:
            faults.raise_if_any()
        except InvalidRequest as error:
            say_why(self, error)
            return None
        return bounds


class RoleForm(FlaskForm):
    role = SelectField("Role", choices=ROLE_WORDS)


class ZoneForm(FlaskForm):
    zone = SelectField("Time zone")

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        regions = {name: name.partition("/")[0] if "/" in name else "Everywhere" for name in zone_names()}
        self.zone.choices = [SelectChoice(name, optgroup=region) for name, region in regions.items()]


_YES = {"yes": True, "no": False}
NONE = "none"


def setting_text(value: Any) -> str:
    """Write the value of a setting as the form has it."""
    return NONE if value is None else {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


class SettingsForm(FlaskForm):
    """What an admin sets for the organization; the platform's rules check it. Of a number, `none` is a value too."""

    approval_above = typed(SETTING_LABELS["approval_above"])
    approval_of = SelectField(
        SETTING_LABELS["approval_of"], choices={"console": "members", "all": "members and programs"}
    )
    held_days = typed(SETTING_LABELS["held_days"])
    low_balance = typed(SETTING_LABELS["low_balance"])
    requires_second_factor = SelectField(
        SETTING_LABELS["requires_second_factor"],
        choices={"no": "each member may have one", "yes": "every member must have one"},
    )
    seen = HiddenField()
    current = PasswordField("Your password", validators=[InputRequired("Enter your password.")])

    def values(self) -> dict[str, Any] | None:
        """Return the value of each setting; None, and a sentence beside each field that is wrong."""
        texts = {name: self[name].data or "" for name in SETTING_LABELS}
        numbers = {name: amount_of(texts[name]) for name in texts if isinstance(self[name], StringField)}
        for name, number in numbers.items():
            if number is None and texts[name] != NONE:
                say_beside(self[name], f"{self[name].label.text} must be a whole number, digits only, or {NONE}.")
        if self.errors:
            return None
        try:
            flag = {"requires_second_factor": _YES.get(texts["requires_second_factor"])}
            return CHANGEABLE.read_sent(texts | numbers | flag, settings())
        except InvalidRequest as error:
            say_why(self, error)
            return None


class MailForm(FlaskForm):
    kinds = SelectMultipleField(
        "Tell me by e-mail when", choices=MAIL_WORDS, widget=ListWidget(), option_widget=CheckboxInput()
    )


class WebhookForm(FlaskForm):
    """A webhook. The API's rules check it, so that all faults are shown at once. `seen` is what the page showed."""

    seen = HiddenField()
    url = typed("URL")
    types = typed("Types of events")
    description = typed("Name")

    def fields(self) -> dict[str, Any]:
        """Return what is typed as a caller of the API would send it; a type may be written with blanks in it."""
        types = self.types.data or "*"
        for kind in TYPES:
            types = types.replace(kind.replace("_", " "), kind)
        listed = list(dict.fromkeys(re.findall(r"[^\s,;]+", types)))
        return {"url": self.url.data or "", "types": listed or ["*"], "description": self.description.data or ""}


class ReplayForm(FlaskForm):
    from_sequence = typed("Send again from event")


class FormFault(NamedTuple):
    """One line of the summary: the sentence, and the id of the control to mend; None: no single one."""

    sentence: str
    target: str | None


def faults_of(forms: Sequence[BaseForm]) -> list[FormFault]:
    """Return the faults of the forms of a page, in the order of their fields."""
    places = [place for form in forms for place in (form, *form)]
    return [FormFault(sentence, _target(place)) for place in places for sentence in _errors(place)]


def in_words(sentence: str, label: str) -> str:
    """Return a sentence of the interface for a person, who sees the label in place of the field's name."""
    return figures_apart(sentence.about(subject(label))) if isinstance(sentence, Fault) else sentence


def subject(label: str) -> str:
    """Return what a sentence about a field begins with: its label, without an addition behind a comma."""
    return label.partition(",")[0]


def _errors(place: BaseForm | Field) -> Sequence[str]:
    errors: Sequence[str] = place.form_errors if isinstance(place, BaseForm) else place.errors
    return errors


def _target(field: BaseForm | Field) -> str | None:
    """Return the id of a field's control; of radio buttons or boxes to tick, that of the first; None for a form."""
    if isinstance(field, BaseForm):
        return None
    first = next(iter(field), None) if isinstance(field, RadioField | SelectMultipleField) else None
    return str((first or field).id)
