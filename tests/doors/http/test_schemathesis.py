"""The published OpenAPI document against a real service, by a tool that reads nothing else."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.config.settings import Settings
from roundtrip.devnet.world import Built
from roundtrip.services.runtime.context import Context
from support.serving import service

TOKENS = ("plain", "cooldown", "owner_only_sell", "fee_on_sell")
CONFIG = Path(__file__).resolve().parents[1] / "schemathesis.toml"
EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "20")
"""Of each operation and kind of data; ``make long NAME=schemathesis`` has more."""


def strict_parameters() -> dict[str, Any]:
    """What the service takes, by type: null, too, for what may be left out."""
    kinds = [row.params for row in OPERATIONS if row.has_body()]
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    for schema in schemas.values():
        for name in schema["properties"].keys() - set(schema.get("required", ())):
            field = schema["properties"][name]
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}]}
    return schemas


@pytest.mark.timeout(1200)
async def test_nothing_in_the_document_is_untrue(indexed: Context, built: Built, tmp_path: Path) -> None:
    tokens = " ".join(built.tokens[name] for name in TOKENS)
    strict = tmp_path / "strict.json"
    strict.write_text(json.dumps(strict_parameters()))
    hooks = {
        "SCHEMATHESIS_HOOKS": "support.schemathesis_hooks",
        "SCHEMATHESIS_TOKENS": tokens,
        "SCHEMATHESIS_STRICT": str(strict),
    }
    environment = {**os.environ, **hooks, "PYTHONPATH": str(Path(__file__).parents[2])}
    limits = Settings(anon_per_minute=1_000_000, most_checks_at_once=10_000)
    async with indexed.heads.following(), service(indexed, limits) as url:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "schemathesis.cli", "--config-file", CONFIG, "run",
            f"{url}/v1/openapi.json", "--checks", "all", "--max-examples", EXAMPLES, "--no-color",
            "--generation-deterministic", "--workers", "1", "--continue-on-failure",
            cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            result, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    answer = result.decode()
    print(answer)
    assert process.returncode == 0, answer
    counted = re.search(r"(\d+) generated, (\d+) passed\n", answer)
    assert counted is not None
    assert counted[1] == counted[2]
    assert int(counted[1]) >= 10 * int(EXAMPLES)
    tested = sum(row.path is not None for row in OPERATIONS) + 1
    assert f"Tested: {tested}\n" in answer
