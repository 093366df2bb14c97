"""What the Python client's package holds, and what both packages say of themselves."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from docs.test_wheel import built_wheel
from roundtrip_client import client
from support.documents import PROJECT

PYTHON = PROJECT / "clients" / "python"


def test_a_wheel_holds_the_whole_client_and_its_types(tmp_path: Path) -> None:
    wheel = built_wheel(PYTHON, tmp_path)
    own = {f"roundtrip_client/{path.name}" for path in (PYTHON / "src" / "roundtrip_client").glob("*.*")}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == own
    assert "roundtrip_client/py.typed" in packed
    program = "import sys, roundtrip_client\nassert 'roundtrip' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(wheel)}, check=True)


def test_both_packages_have_one_name_and_version() -> None:
    ours = tomllib.loads((PYTHON / "pyproject.toml").read_text())["project"]
    theirs = json.loads((PROJECT / "clients" / "typescript" / "package.json").read_text())
    named = f"{ours['name']}/{ours['version']}"
    assert named == f"{theirs['name']}/{theirs['version']}" == client.NAME


def test_what_it_needs_is_what_it_is_tested_with() -> None:
    needed = tomllib.loads((PYTHON / "pyproject.toml").read_text())["project"]["dependencies"]
    lock = (PROJECT / "requirements.lock").read_text()
    for name, least in (re.fullmatch(r"([\w-]+)>=([\d.]+),<\d+", line).groups() for line in needed):  # type: ignore[union-attr]
        assert re.search(rf"(?m)^{name}=={re.escape(least)}\.\d", lock), name
