"""What the forms share: every one is protected against forgery, and blanks around its words do not count."""

from flask_wtf import FlaskForm
from wtforms import Field, PasswordField, StringField
from wtforms.validators import InputRequired


def stripped(text: str | None) -> str | None:
    return text.strip() if text else text


def say_beside(field: Field, sentence: str) -> None:
    """Put what is wrong beside its field."""
    field.errors = [*field.errors, sentence]


class SignInForm(FlaskForm):
    email = StringField("E-mail address", filters=[stripped], validators=[InputRequired("Say who you are.")])
    password = PasswordField("Password", validators=[InputRequired("Give your password.")])


class ChoosePasswordForm(FlaskForm):
    password = PasswordField("New password", validators=[InputRequired("Choose a password.")])
    again = PasswordField("The same again", validators=[InputRequired("Give the password a second time.")])
