"""``make lint`` prints how much code each capability takes, and points at records that repeat one."""

import shutil
import subprocess
import sys
from pathlib import Path

REPORT = Path(__file__).resolve().parents[2] / ".ci" / "report_sizes.py"
RECORD = "class {name}:\n    token: str\n    block: int\n    level: str\n    code: str\n{more}"


def run(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout


def write(folder: Path, path: str, source: str) -> None:
    file = folder / "src" / "roundtrip" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)


def commit(folder: Path) -> None:
    run(folder, "git", "add", ".")
    run(folder, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "change")


def report(folder: Path) -> list[str]:
    return run(folder, sys.executable, ".ci/report_sizes.py", "base").splitlines()


def test_a_new_record_that_repeats_another_is_pointed_at(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(REPORT, tmp_path / ".ci")
    write(
        tmp_path,
        "domain/check/verdict.py",
        '"""A head."""\n\n# why\n' + RECORD.format(name="Verdict", more=""),
    )
    write(tmp_path, "store/check/rows.py", RECORD.format(name="Row", more=""))
    assert report(tmp_path) == ["code lines: 10: check 10"]
    run(tmp_path, "git", "init", "-qb", "main")
    commit(tmp_path)
    run(tmp_path, "git", "branch", "base")
    write(tmp_path, "services/holders/answer.py", RECORD.format(name="Answer", more="    extra: int\n"))
    write(
        tmp_path,
        "services/holders/other.py",
        RECORD.format(name="Other", more="").replace("code: str", "code: int"),
    )
    commit(tmp_path)
    first, *doubles = report(tmp_path)
    assert first.startswith("code lines: 21, +11 since ")
    assert first.endswith(": holders 11 (+11), check 10")
    assert doubles == [
        "  src/roundtrip/services/holders/answer.py:Answer shares 4 fields with "
        "src/roundtrip/store/check/rows.py:Row"
    ]
