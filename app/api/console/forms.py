"""What the forms share: every one is protected against forgery, and blanks around its words do not count."""

from flask_wtf import FlaskForm
from wtforms import Field, PasswordField, SelectField, StringField, ValidationError
from wtforms.validators import DataRequired, InputRequired

from app.errors import InvalidAddress
from app.members import ADMIN, SENDER, VIEWER
from app.values.addresses import parse

ROLE_WORDS = {
    VIEWER: "viewer: sees",
    SENDER: "sender: also sends, cancels and takes back",
    ADMIN: "admin: also members, keys and webhooks",
}


def stripped(text: str | None) -> str | None:
    return text.strip() if text else text


def say_beside(field: Field, sentence: str) -> None:
    """Put what is wrong beside its field."""
    field.errors = [*field.errors, sentence]


class SignInForm(FlaskForm):
    email = StringField("E-mail address", filters=[stripped], validators=[DataRequired("Say who you are.")])
    password = PasswordField("Password", validators=[InputRequired("Give your password.")])


class ChoosePasswordForm(FlaskForm):
    password = PasswordField("New password", validators=[InputRequired("Choose a password.")])
    again = PasswordField("The same again", validators=[InputRequired("Give the password a second time.")])


class ChangePasswordForm(ChoosePasswordForm):
    current = PasswordField("Your password now", validators=[InputRequired("Give the password that you have now.")])


class MemberForm(FlaskForm):
    email = StringField("E-mail address", filters=[stripped], validators=[DataRequired("Give an e-mail address.")])
    first_name = StringField("First name", filters=[stripped], validators=[DataRequired("Give a first name.")])
    last_name = StringField("Last name", filters=[stripped])
    role = SelectField("Role", choices=ROLE_WORDS)

    def validate_email(self, field: Field) -> None:
        try:
            parse(field.data)
        except InvalidAddress as error:
            raise ValidationError(f"It {error.sentence}") from None


class WebhookForm(FlaskForm):
    """What it may hold is decided by the rules of the interface, which have all its faults at once."""

    url = StringField("URL", filters=[stripped])
    types = StringField("Types of events", filters=[stripped])
    description = StringField("Name", filters=[stripped])
