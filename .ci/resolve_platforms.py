#!/usr/bin/env python3
"""Resolves what each package needs for each platform, from built packages (wheels) only, with uv.

It asks the package index, so it is no test. Prints one line for each platform and Python; exits with 1 where
one differs from what docs/operations.md promises.
"""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PLATFORMS = {
    "Linux x86-64": "x86_64-unknown-linux-gnu",
    "Linux arm64": "aarch64-unknown-linux-gnu",
    "macOS arm64": "aarch64-apple-darwin",
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PACKAGES = {
    "check": ["pyproject.toml"],
    "server": ["pyproject.toml", "--extra", "server"],
    "verify": ["verify/pyproject.toml"],
    "client": ["clients/python/pyproject.toml"],
}
MISSING = {("server", "3.14")}
"""What does not resolve anywhere: coincurve has no wheel for that Python."""


def resolves(package: str, platform: str, python: str) -> bool:
    """Whether every package that it needs has a wheel there."""
    options = ["--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:"]
    command = ["uv", "pip", "compile", *options, "--python-platform", platform, "--python-version", python]
    return subprocess.run([*command, *PACKAGES[package]], cwd=PROJECT, capture_output=True).returncode == 0


def main() -> int:
    """Prints the table; returns the exit code."""
    wrong = 0
    for name, platform in PLATFORMS.items():
        for python in PYTHONS:
            found = {package for package in PACKAGES if resolves(package, platform, python)}
            expected = {package for package in PACKAGES if (package, python) not in MISSING}
            note = "" if found == expected else f"  expected: {', '.join(sorted(expected))}"
            wrong += bool(note)
            print(f"{name:13} Python {python}: {', '.join(sorted(found))}{note}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
