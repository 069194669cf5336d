"""The calls of the API, each declared where its function stands (`app/api/calls.py`). Every file here is imported."""

from importlib import import_module
from pkgutil import iter_modules

from app.api.calls import CALLS

__all__ = ["CALLS"]

# In the order in which the page of the calls shows those of a group; the others come after.
_FIRST = ("verify", "send", "reverse", "organization", "platform_users", "platform_organizations", "platform_access")

for _name in dict.fromkeys([*_FIRST, *(module.name for module in iter_modules(__path__))]):
    import_module(f"{__name__}.{_name}")
