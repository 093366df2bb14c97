"""``python -m deploy.lint DIRECTORY``: checks the deployment files with the usual tools. The tools are in the
directory, except systemd's. Exit 1: a tool found something, or is missing."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNITS = HERE / "systemd"
MAX_EXPOSED = "20"
"""The highest accepted exposure level of systemd-analyze, in tenths; the worst is 100."""
_VALIDATED = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(wrong) if wrong else 0)
"""


def compose_in(folder: Path) -> Path:
    """The compose file with settings beside it, as in a real setup."""
    file = Path(shutil.copy(HERE / "compose.yaml", folder))
    for name in ("roundtrip.env", "secrets.env"):
        shutil.copy(HERE / f"{name}.example", folder / name)
    digests = "".join(f"{name}_DIGEST=sha256:{'0' * 64}\n" for name in ("POSTGRES", "VALKEY"))
    (folder / ".env").write_text(f"DATABASE_PASSWORD=abc\n{digests}")
    return file


def root_in(folder: Path) -> list[str]:
    """Creates a machine that looks installed to systemd; returns the names of the units."""
    programs = [folder / "opt/roundtrip/bin/roundtrip", folder / "bin/kill", folder / "bin/sh"]
    units = folder / "etc/systemd/system"
    for program in programs:
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    units.mkdir(parents=True)
    theirs = folder / "usr/lib/systemd/system"
    theirs.mkdir(parents=True)
    for kind in ("*.target", "*.slice", "*.mount"):
        for path in Path("/usr/lib/systemd/system").glob(kind):
            shutil.copy(path, theirs)
    found = sorted(path for path in UNITS.iterdir() if path.suffix in (".service", ".target", ".timer"))
    for path in found:
        shutil.copy(path, units)
    return [path.name for path in found]


def looked_at(tools: Path, folder: Path) -> list[tuple[str, list[str]]]:
    """The files that are checked, and the command that checks each."""
    (folder / "compose").mkdir()
    compose = str(compose_in(folder / "compose"))
    units, bills = root_in(folder / "root"), sorted(HERE.parent.glob("dist/*.cdx.json"))
    rate = ["systemd-analyze", "security", "--offline=yes", f"--threshold={MAX_EXPOSED}"]
    return [
        ("the image", [str(tools / "hadolint"), str(HERE / "Dockerfile")]),
        ("the compose file", [str(tools / "docker-compose"), "-f", compose, "config", "--quiet"]),
        ("its schema", [str(tools / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", compose]),
        ("its hardening", [str(tools / "compose-lint"), "--fail-on", "high", compose]),
        ("the units", ["systemd-analyze", "verify", "--man=no", f"--root={folder / 'root'}", *units]),
        *((one, [*rate, str(UNITS / one)]) for one in units if one.endswith(".service")),
        *((one.name, [str(tools / "python"), "-c", _VALIDATED, str(one)]) for one in bills),
    ]


def main(tools: Path) -> int:
    """Prints the result of each check, with the tool's output if it found something."""
    found = 0
    with tempfile.TemporaryDirectory() as name:
        for what, command in looked_at(tools, Path(name)):
            try:
                done = subprocess.run(
                    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=name
                )
                said, wrong = done.stdout, done.returncode != 0
            except OSError as error:
                said, wrong = str(error), True
            # systemd prints what is wrong with a unit, and exits 0.
            wrong = wrong or (what == "the units" and bool(said.strip()))
            print(f"{'WRONG' if wrong else 'ok   '} {what}{chr(10) + said if wrong else ''}")
            found += wrong
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
