"""A log on a disk that is full."""

import json
import subprocess
import sys
from pathlib import Path

LOGS = """
import resource, structlog
from roundtrip.cli.terminal import log_to_stderr

def most(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

log_to_stderr()
log = structlog.get_logger("log")
log.warning("before")
most(1)
for number in range(1000):
    log.warning("full", number=number, much="x" * 100)
most(resource.RLIM_INFINITY)
log.warning("after")
print("went on")
"""


def test_a_log_that_cannot_be_written_ends_nothing_and_goes_on_later(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as answer:
        done = subprocess.run([sys.executable, "-c", LOGS], stdout=subprocess.PIPE, stderr=answer, check=True)
    assert done.stdout == b"went on\n"
    lines = log.read_text().splitlines()
    assert [json.loads(line)["event"] for line in (lines[0], lines[-1])] == ["before", "after"]
