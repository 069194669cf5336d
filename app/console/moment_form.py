"""A day and a time of the member's zone in a form."""

import re
from datetime import date, datetime, time

from flask_wtf import FlaskForm
from wtforms import StringField

from app.console.blueprints import current_zone
from app.console.forms import say_beside, stripped
from app.values.zones import local_moment, moment_of

_DAY, _CLOCK = re.compile("2[0-9]{3}-[0-9]{2}-[0-9]{2}"), re.compile("([01]?[0-9]|2[0-3]):([0-5][0-9])")


class MomentForm(FlaskForm):
    """A moment, as a browser's fields for a day and a time send it."""

    day = StringField("Day", filters=[stripped])
    clock = StringField("Time", filters=[stripped])

    @staticmethod
    def shown(moment: datetime | None) -> dict[str, str]:
        """Return what the fields show for a moment; nothing for None."""
        if moment is None:
            return {}
        local = local_moment(current_zone(), moment)
        return {"day": f"{local:%Y-%m-%d}", "clock": f"{local:%H:%M}"}

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
