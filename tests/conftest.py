"""Markers, and the fixtures of every test but units: those are in ``support.fixtures``."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tiers import mark_slow

PROJECT = Path(__file__).resolve().parents[1]
UNITS = PROJECT / "tests" / "unit"
# Folders' own conftests import from it before it is loaded as a plugin.
pytest.register_assert_rewrite("support.fixtures")
# No test asserts how long something takes.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")
# make e2e runs these: they need a browser.
collect_ignore = ["e2e"]
# Under make a service logs for a person to read; tests read its log.
os.environ.pop("MAKELEVEL", None)
# A process started under nohup ignores SIGHUP, one in a script's background SIGINT; children inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Unit tests need no chain and no database: the plugin that starts these takes four seconds to import."""
    paths = [
        Path(config.invocation_params.dir, argument.partition("::")[0]).resolve() for argument in config.args
    ]
    if not all(UNITS in (path, *path.parents) for path in paths):
        config.pluginmanager.import_plugin("support.fixtures")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test gets the name of its folder as a marker; slow ones are marked slow."""
    mark_slow(items)
    for item in items:
        folder = item.path.relative_to(PROJECT / "tests").parts[0]
        item.add_marker(getattr(pytest.mark, folder))


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the person who runs the tests do not reach them."""
    for name in list(os.environ):
        if name.startswith("ROUNDTRIP_"):
            monkeypatch.delenv(name)
