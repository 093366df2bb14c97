"""A command reads what it needs. All there is takes three seconds to read, and every process would."""

import subprocess
import sys

import pytest

HEAVY = ("eth_account", "vyper", "mcp", "redis")
SWITCHED = ("opentelemetry.sdk.trace", "opentelemetry.exporter", "google.protobuf", "requests")
"""What only a collector of spans takes; what else there is of it, libraries read for themselves."""


def read_by(name: str) -> set[str]:
    """What of the heavy packages is read for a command, in a process of its own."""
    asked = f"import sys; from roundtrip.cli import main; main.command({name!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return {*HEAVY, *SWITCHED} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("name", "heavy"),
    [
        ("sync", set()),
        ("work", set()),
        ("keys", set()),
        ("backup", set()),
        ("serve", {"mcp", "redis"}),
        ("demo", set(HEAVY)),
    ],
)
def test_a_command_reads_only_what_it_needs(name: str, heavy: set[str]) -> None:
    assert read_by(name) == heavy
