"""The statements of the service, as its modules hold them."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import TextClause

import app

# They start something when they are imported.
_PROGRAMS = {"app.web.gunicorn"}


def of_modules() -> dict[str, str]:
    """Return each statement that a module of `app` holds, by the module and the name there."""
    names = [module.name for module in pkgutil.walk_packages(app.__path__, "app.") if module.name not in _PROGRAMS]
    return {
        f"{name}:{place}": " ".join(statement.split())
        for name in names
        for variable, value in vars(importlib.import_module(name)).items()
        for place, statement in _within(variable, value)
    }


def _within(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, TextClause):
        yield place, value.text
    elif isinstance(value, bytes) and b" FROM " in value:
        yield place, value.decode()
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _within(f"{place}[{key}]", one)
