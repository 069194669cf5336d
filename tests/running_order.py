"""The order of the test files: those that wait for a service stand between those that compute, and fill their waits."""

from pathlib import Path

import pytest

# What takes longest comes first, so that no process is left alone with it at the end.
_WAITING = ("crash", "operations", "e2e", "browser", "contract")
_COMPUTING = ("integration", "unit")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mix the files of both kinds evenly, and keep how many tests are `long` for the last line of `make test`."""
    files = list(dict.fromkeys(item.path for item in items))
    places: dict[Path, float] = {}
    for folders in (_WAITING, _COMPUTING):
        own = [file for folder in folders for file in files if folder in file.parts]
        places |= {file: (number + 0.5) / len(own) for number, file in enumerate(own)}
    items.sort(key=lambda item: places.get(item.path, 0))
    if config.pluginmanager.has_plugin("cacheprovider"):
        assert config.cache is not None
        config.cache.set("points/long", sum(item.get_closest_marker("long") is not None for item in items))
