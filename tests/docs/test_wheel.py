"""The wheels carry every file that the installed packages read, and ask for what was tested."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from unit.verify.samples import CASES, NETWORK_FILE, body

PROJECT = Path(__file__).resolve().parents[2]


def built_wheel(folder: Path, into: Path) -> Path:
    """The wheel of the project in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (built,) = into.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(built_wheel(PROJECT, tmp_path_factory.mktemp("wheel")))


def test_a_wheel_carries_all_that_the_package_reads(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    read = [
        path for path in (PROJECT / "src" / "roundtrip").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]  # fmt: skip
    assert {path.relative_to(PROJECT / "src").as_posix() for path in read} <= names
    loaded = {
        "htmx.org/dist/htmx.min.js",
        "htmx-ext-sse/dist/sse.min.js",
        "uplot/dist/uPlot.iife.min.js",
        "uplot/dist/uPlot.min.css",
        "dejavu-fonts-ttf/LICENSE",
        "dejavu-fonts-ttf/ttf/DejaVuSans.ttf",
        "dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf",
    }
    assert {f"roundtrip/carried/node_modules/{path}" for path in loaded} <= names
    assert not any("anvil" in name for name in names)
    assert not any("contracts/" in name for name in names)


def test_a_wheel_of_development_carries_what_a_local_chain_takes(tmp_path: Path) -> None:
    folder = PROJECT / "development"
    wheel = zipfile.ZipFile(built_wheel(folder, tmp_path))
    names = set(wheel.namelist())
    own = {path.relative_to(folder / "src").as_posix() for path in (folder / "src").rglob("*.py")}
    contracts = {path.relative_to(PROJECT).as_posix() for path in (PROJECT / "contracts").rglob("*.vy")}
    npm = {"package.json", "package-lock.json", ".npmrc"}
    assert own | {f"roundtrip_development/carried/{path}" for path in contracts | npm} <= names
    (points,) = (name for name in names if name.endswith("/entry_points.txt"))
    assert "demo = roundtrip_development.commands.demo:demo" in wheel.read(points).decode().splitlines()


def test_wheels_ask_for_what_was_tested() -> None:
    """The versions of the lock, or for the library ranges that have them; and nothing that only tests need,
    or the other packages of ours, whose names somebody else may take on an index."""
    locked = dict(
        re.findall(r"^([\w.-]+)==([^ ;\\]+)", (PROJECT / "requirements-tests.lock").read_text(), re.M)
    )
    wanted: dict[str, set[str]] = {}
    for part in (PROJECT / "requirements.in").read_text().removeprefix("# ").split("\n# "):
        title, *lines = part.splitlines()
        wanted[title] = {line.partition("==")[0] for line in lines}
    product, verifier, development = (read_needed(folder) for folder in (".", "verify", "development"))
    assert {need.name for need in (*product[0], *product[1])} == wanted["what runs"]
    assert {need.name for need in (*development[0], *development[1])} == wanted["what development runs"]
    assert {need.name for need in verifier[0]} <= {need.name for need in product[0]}
    for library, extras in (product, verifier, development):
        assert all(need.specifier.contains(locked[need.name]) for need in (*library, *extras))
        assert all(str(need.specifier).startswith("==") for need in extras)


def read_needed(folder: str) -> tuple[list[Requirement], list[Requirement]]:
    """The requirements of the project in a folder, and those of its extras."""
    project = tomllib.loads((PROJECT / folder / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {}).values()
    return (
        [Requirement(need) for need in project["dependencies"]],
        [Requirement(need) for extra in extras for need in extra],
    )


def test_the_verifier_is_a_package_of_its_own(tmp_path: Path) -> None:
    wheel = built_wheel(PROJECT / "verify", tmp_path)
    own = {
        f"roundtrip_verify/{path.name}"
        for path in (PROJECT / "verify/src/roundtrip_verify").iterdir()
        if path.is_file()
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == own
    network, file = tmp_path / "network.json", tmp_path / "buy.json"
    network.write_text(json.dumps(NETWORK_FILE))
    file.write_text(json.dumps(body(CASES[0])))
    program = (
        "import runpy, sys\ntry:\n    runpy.run_module('roundtrip_verify', run_name='__main__')\n"
        "finally:\n    assert 'roundtrip' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(file), "--network", str(network)],
        env={"PYTHONPATH": str(wheel)}, capture_output=True, text=True,
    )  # fmt: skip
    wrong = [line for line in done.stdout.splitlines() if line.startswith("WRONG")]
    assert (done.returncode, len(wrong), done.stderr) == (1, 1, "")
    assert "expired" in wrong[0]
