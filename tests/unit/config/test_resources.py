"""What a wheel carries, and how it lays out what comes not by pip."""

import re
import stat
import tomllib
from pathlib import Path

import pytest

from roundtrip.config.resources import NPM, NotInstalled, lay_out_project

PROJECT = Path(__file__).resolve().parents[3]
SAID: list[str] = []


def carried(folder: Path) -> Path:
    (folder / "contracts").mkdir(parents=True)
    (folder / "contracts" / "token.vy").write_text("# a token")
    (folder / "package-lock.json").write_text("{}")
    (folder / "node_modules").mkdir()
    return folder


def npm(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Puts another npm before the real one."""
    folder.mkdir(exist_ok=True)
    program = folder / "npm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_it_is_laid_out_once_and_again_for_another_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm(tmp_path / "bin", monkeypatch, 'mkdir node_modules && echo "$@" >> ../asked')
    given, folder, messages = carried(tmp_path / "carried"), tmp_path / "project", list[str]()
    for _ in range(2):
        assert lay_out_project(given, folder, messages.append) == folder
    assert (tmp_path / "asked").read_text().splitlines() == [" ".join(NPM[1:])]
    assert messages == ["installing the local chain's node"]
    assert (folder / "contracts" / "token.vy").read_text() == "# a token"
    (given / "contracts" / "token.vy").write_text("# another")
    lay_out_project(given, folder, messages.append)
    assert (folder / "contracts" / "token.vy").read_text() == "# another"
    assert len(messages) == 2


def test_what_npm_could_not_install_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, folder = carried(tmp_path / "carried"), tmp_path / "project"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalled, match="npm"):
        lay_out_project(given, folder, SAID.append)
    npm(tmp_path / "bin", monkeypatch, "echo no network >&2; exit 1")
    with pytest.raises(NotInstalled, match="no network"):
        lay_out_project(given, folder, SAID.append)
    npm(tmp_path / "bin", monkeypatch, "mkdir node_modules")
    assert lay_out_project(given, folder, SAID.append) == folder


def test_a_wheel_asks_for_what_was_tested() -> None:
    """The versions of the lock; and nothing that only tests need."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    asked = {
        one for part in (project["dependencies"], *project["optional-dependencies"].values()) for one in part
    }
    locked = dict(re.findall(r"^([\w.-]+)==([^ ;\\]+)", (PROJECT / "requirements.lock").read_text(), re.M))
    runs = (PROJECT / "requirements.in").read_text().split("# what builds")[0].splitlines()
    named = {line.partition("==")[0] for line in runs if line and not line.startswith("#")}
    assert asked == {f"{name}=={locked[name]}" for name in named}
