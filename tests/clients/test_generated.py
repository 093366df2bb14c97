"""The generated part of both clients is what docs/openapi.json makes of it."""

import subprocess
import sys
from pathlib import Path

from clients.generate import MODELS, SCHEMA

from support.documents import PROJECT


def test_models_and_schema_are_those_of_the_document(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "clients.generate", tmp_path], cwd=PROJECT, check=True, timeout=100)
    for path in (MODELS, SCHEMA):
        assert (tmp_path / path.name).read_text() == path.read_text(), "make write NAME=clients"
