"""No more of a file is read than an answer can be."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import roundtrip_verify as verify

ENDLESS = Path("/dev/zero")


def test_an_endless_file_is_no_answer() -> None:
    with pytest.raises(verify.Unreadable, match="larger"):
        verify.parse_file(ENDLESS)


@pytest.mark.parametrize("command", [("roundtrip", "verify-trade"), ("roundtrip_verify",)])
def test_both_commands_end_with_a_sentence(command: tuple[str, ...], tmp_path: Path) -> None:
    """Also where memory is short."""
    network = tmp_path / "network.json"
    network.write_text("{}")

    def limit_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))

    for files in ((ENDLESS, network), (network, ENDLESS)):
        done = subprocess.run(
            [sys.executable, "-m", *command, str(files[0]), "--network", str(files[1])],
            capture_output=True, text=True, timeout=60, check=False, preexec_fn=limit_memory,
        )  # fmt: skip
        assert done.returncode == 2
        assert len((done.stdout + done.stderr).splitlines()) == 1
