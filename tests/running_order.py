"""The order of the test files: those that wait for a service stand between those that compute, and fill their waits."""

from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# What takes longest comes first, so that no process is left alone with it at the end.
_WAITING = ("crash", "operations", "e2e", "browser", "contract")
_COMPUTING = ("integration", "unit")
# Each test of these takes long, and needs nothing of the others: any process takes the next.
_SHARED_OUT = ("tests/e2e/openapi/test_schemathesis.py", "tests/contract/test_pairs_of_features.py")


class _ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types.
    def _split_scope(self, nodeid: str) -> str:
        """Return what runs in one process: xdist has no other place to say it."""
        file = super()._split_scope(nodeid)
        return nodeid if file in _SHARED_OUT else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _ByFile | None:
    return _ByFile(config, log) if config.getoption("dist") == "loadfile" else None


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
