"""The wheel carries every file that the installed package reads."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    into = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)],
        cwd=PROJECT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (built,) = into.glob("*.whl")
    return zipfile.ZipFile(built)


def test_a_wheel_carries_all_that_the_package_reads(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    read = [
        path for path in (PROJECT / "src" / "roundtrip").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]  # fmt: skip
    assert {path.relative_to(PROJECT / "src").as_posix() for path in read} <= names
    contracts = {path.relative_to(PROJECT).as_posix() for path in (PROJECT / "contracts").rglob("*.vy")}
    assert {f"roundtrip/carried/{path}" for path in contracts} <= names
    loaded = {
        "htmx.org/dist/htmx.min.js",
        "htmx-ext-sse/dist/sse.min.js",
        "uplot/dist/uPlot.iife.min.js",
        "uplot/dist/uPlot.min.css",
    }
    assert {f"roundtrip/carried/node_modules/{path}" for path in loaded} <= names
    assert {"roundtrip/carried/package-lock.json", "roundtrip/carried/.npmrc"} <= names
    assert not any("anvil" in name for name in names if "node_modules" in name)
