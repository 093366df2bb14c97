"""A client that openapi-python-client generates from the document has every operation with its answer."""

import os
import subprocess
from pathlib import Path

import pytest
from clients.generate import CLIENTS, DOCUMENT

from roundtrip.api.operations.catalog import OPERATIONS

BIN = CLIENTS / "python" / ".venv" / "bin"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Where it was generated, and what the generator said."""
    folder = tmp_path_factory.mktemp("generated") / "client"
    ran = subprocess.run(
        [
            BIN / "openapi-python-client", "generate", "--path", DOCUMENT, "--output-path", folder,
            "--meta", "none",
        ],
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder, ran.stdout + ran.stderr


def test_no_part_of_the_document_is_left_out(generated: tuple[Path, str]) -> None:
    folder, text = generated
    assert "warning" not in text.lower(), text
    names = {path.stem for path in folder.glob("api/*/*.py")} - {"__init__"}
    # It writes an underscore after a name that is one of Python's own, or of its own.
    assert {name.rstrip("_") for name in names} == {
        *(row.name for row in OPERATIONS if row.path is not None),
        "tools",
    }


@pytest.mark.parametrize(
    ("module", "answer"),
    [("accounts/make_key", "KeyMade.from_dict(response.json())"), ("tokens/check_tokens", "response.text")],
)
def test_an_answer_is_read(generated: tuple[Path, str], module: str, answer: str) -> None:
    code = (generated[0] / "api" / f"{module}.py").read_text()
    assert f"if response.status_code == 200:\n        response_200 = {answer}\n" in code
