"""Checks over the local chain's node alone: the library, and the commands as a person starts them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.config.networks import Network, network_from
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.library.checker import BlockingChecker, Checker
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.liquidity.handler import check_with_liquidity
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, describe
from support.tables import own_database

NOW_S = 1_800_000_000.0
ENTROPY = bytes(range(32))
STORIES = {"plain": "ok", "blacklist_after_buy": "cannot_sell", "curve": "ok", "no_pool": "no_pool"}
WAIT_S = 60.0


@pytest.fixture
def network_file(built: Built, rpc: SyncRpc, tmp_path: Path) -> Path:
    path = tmp_path / "devnet.json"
    path.write_text(json.dumps(describe(built, rpc.url)))
    return path


@pytest.fixture
def network(network_file: Path) -> Network:
    return network_from(network_file)


@pytest.fixture(scope="module")
async def empty_url(database_url: str) -> AsyncIterator[str]:
    """A database of its own: its checks are of another day."""
    async with own_database(database_url, "over_a_node") as url:
        yield url


@pytest.fixture
async def unindexed(ctx: Context, empty_url: str) -> AsyncIterator[Context]:
    """The service's context, where nothing is followed yet."""
    heads = Heads(ctx.node, ctx.chain_id, ctx.contracts)
    async with connections.create_pool(empty_url, min_size=1, max_size=2) as pool:
        yield replace(ctx, heads=heads, pool=pool, now_s=lambda: NOW_S, entropy=lambda: ENTROPY)


@pytest.mark.parametrize(("key", "code"), STORIES.items())
async def test_the_library_answers_what_the_api_answers(
    unindexed: Context, network: Network, built: Built, key: str, code: str
) -> None:
    await unindexed.heads.refresh()
    served = (await check(unindexed, CheckParams(built.tokens[key]))).answer
    opened = Checker(network.rpc_url, network=network, now_s=lambda: NOW_S, entropy=lambda: ENTROPY)
    async with opened as checker:
        found = await checker.check(built.tokens[key])
    assert found.verdict.code == code
    assert msgspec.json.encode(found) == msgspec.json.encode(served)


async def test_a_deep_check_says_who_can_withdraw_the_liquidity(
    unindexed: Context, network: Network, built: Built
) -> None:
    sentence = "can withdraw 100.00 % of the liquidity at any moment; you could then not sell at all."
    await unindexed.heads.refresh()
    params = CheckParams(built.tokens["plain"], deep="1")
    deep_check = check(unindexed, params)
    served = (await check_with_liquidity(unindexed, params.token(), deep_check)).answer
    async with Checker(network.rpc_url, network=network) as checker:
        found = await checker.check(built.tokens["plain"], deep=True)
        without = await checker.check(built.tokens["no_pool"], deep=True)
    for answer in (served, found):
        assert answer.verdict.level == "ok"
        assert answer.verdict.text.endswith(sentence), answer.verdict.text
    assert "liquidity" not in without.verdict.text


async def test_an_amount_is_what_the_buy_spends_and_what_the_texts_name(
    network: Network, built: Built
) -> None:
    async with Checker(network.rpc_url, network=network) as checker:
        usual, large = await asyncio.gather(
            checker.check_with_card(built.tokens["plain"]),
            checker.check_with_card(built.tokens["plain"], amount_eth="5"),
        )
    assert usual.answer.trade is not None
    assert large.answer.trade is not None
    assert (usual.answer.trade.paid.amount, large.answer.trade.paid.amount) == ("0.1", "5")
    assert large.answer.verdict.code == "thin_pool"
    assert {row.label.split(",")[0] for row in large.card.grid.rows[:3]} == {
        f"Buy for {size} eth" for size in ("0.005", "5", "50")
    }
    assert large.card.cost is not None
    assert large.card.cost.size == "5 eth"


async def test_wrong_arguments_are_the_callers_and_no_answer_is_no_verdict(
    network: Network, built: Built
) -> None:
    async with Checker(network.rpc_url, network=network) as checker:
        for address, amount in (("0x12", None), (built.tokens["plain"], "11"), (built.tokens["plain"], "x")):
            with pytest.raises(CallerFault):
                await checker.check(address, amount_eth=amount)
    elsewhere = replace(network.contracts, v3_factory=Address("0x" + "12" * 20))
    async with Checker(network.rpc_url, network=replace(network, contracts=elsewhere)) as checker:
        with pytest.raises(CallerFault, match="none of this network"):
            await checker.check(built.tokens["plain"])
    async with Checker("http://127.0.0.1:1", network=network) as checker:
        with pytest.raises(NodeFault):
            await checker.check(built.tokens["plain"])
    with pytest.raises(CallerFault, match="http"):
        await Checker("127.0.0.1:8545", network=network).__aenter__()


async def test_without_asyncio_the_answer_is_the_same(network: Network, built: Built) -> None:
    def ask() -> str:
        with BlockingChecker(network.rpc_url, network=network) as checker:
            return checker.check(built.tokens["blacklist_after_buy"]).verdict.code

    assert await asyncio.to_thread(ask) == "cannot_sell"


# --- the commands ----------------------------------------------------------------------------------


class Ended(NamedTuple):
    """A command that ran."""

    code: int
    out: str
    err: str


async def start(*arguments: str) -> asyncio.subprocess.Process:
    """The installed command, with its input open."""
    program = str(Path(sys.executable).parent / "roundtrip")
    pipe = asyncio.subprocess.PIPE
    environment = {**os.environ, "COLUMNS": "100"}
    return await asyncio.create_subprocess_exec(
        program, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
    )


async def run(*arguments: str, given: str = "") -> Ended:
    process = await start(*arguments)
    async with asyncio.timeout(WAIT_S):
        out, err = await process.communicate(given.encode())
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@pytest.fixture
def at(rpc: SyncRpc, network_file: Path) -> tuple[str, ...]:
    return "--rpc", rpc.url, "--network", str(network_file)


async def test_a_card_has_what_a_person_needs(built: Built, at: tuple[str, ...]) -> None:
    ended = await run("check", built.tokens["blacklist_after_buy"], *at)
    assert ended.code == 2
    for answer in ("DANGER", "cannot sell", 'The token says "blacklisted"', "loss", "fees", "venue", "flags"):
        assert answer in ended.out
    for answer in ("Buy for 0.1 eth, sell all", "refused: blacklisted", "owner   0x", "as of   block"):
        assert answer in ended.out
    assert "\x1b" not in ended.out


async def test_many_get_a_line_each_in_order_and_the_worst_decides(built: Built, at: tuple[str, ...]) -> None:
    tokens = [built.tokens[key] for key in ("plain", "blacklist_after_buy", "no_pool")]
    ended = await run("check", "-", *at, given="\n\n".join(tokens) + "\n")
    assert [line.split()[:2] for line in ended.out.splitlines()] == [
        ["ok", tokens[0]], ["danger", tokens[1]], ["warn", tokens[2]],
    ]  # fmt: skip
    assert ended.code == 2
    assert (await run("check", tokens[0], tokens[2], *at)).code == 1


async def test_json_is_the_apis_answer_a_line_each(built: Built, at: tuple[str, ...]) -> None:
    ended = await run("check", built.tokens["plain"], "--json", *at)
    (line,) = ended.out.splitlines()
    found = msgspec.json.decode(line)
    assert (ended.code, found["verdict"]["code"], found["address"]) == (0, "ok", built.tokens["plain"])
    assert line == msgspec.json.encode(found).decode()


async def test_what_is_not_found_out_is_no_pass(built: Built, network_file: Path) -> None:
    ended = await run(
        "check", built.tokens["plain"], "--rpc", "http://127.0.0.1:1", "--network", str(network_file)
    )
    assert ended.code == 3
    assert ended.out.startswith("UNKNOWN")
    result = await run(
        "check",
        built.tokens["plain"],
        "--json",
        "--rpc",
        "http://127.0.0.1:1",
        "--network",
        str(network_file),
    )
    assert (result.code, json.loads(result.out)["error"]["code"]) == (3, "upstream")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_a_watch_goes_on_until_it_is_interrupted(
    built: Built, at: tuple[str, ...], how: signal.Signals
) -> None:
    process = await start("check", built.tokens["blacklist_after_buy"], "--watch", "--json", *at)
    assert process.stdout is not None
    async with asyncio.timeout(WAIT_S):
        first: dict[str, Any] = {}
        while "verdict" not in first:
            # On a busy machine a check may be too late first.
            first = json.loads(await process.stdout.readline())
        process.send_signal(how)
        code = await process.wait()
    assert first["verdict"]["level"] == "danger"
    assert code in (2, 3)


async def test_a_trade_is_prepared_simulated_and_proven(
    built: Built, rpc: SyncRpc, at: tuple[str, ...], network_file: Path, tmp_path: Path
) -> None:
    wallet = str(describe(built, rpc.url)["accounts"][3]["address"])
    token, file = built.tokens["plain"], tmp_path / "buy.json"
    buy = ("prepare", "buy", token, "--from", wallet, "--amount", "0.1", *at)
    prepared = await run(*buy, "--json")
    file.write_text(prepared.out)
    proven = await run("verify-trade", str(file), "--network", str(network_file), "--from", wallet)
    assert (prepared.code, proven.code) == (0, 0)
    steps = json.loads(prepared.out)["steps"]
    calls = json.dumps([{"to": step["to"], "input": step["data"], "value": step["value"]} for step in steps])
    simulated = await run("simulate", "--from", wallet, "--calls", calls, *at)
    assert simulated.code == 0
    assert "receives" in simulated.out
    assert "step 1" in (await run(*buy)).out
    trap = await run("prepare", "buy", built.tokens["blacklist_after_buy"], *buy[3:])
    assert (trap.code, "Refused." in trap.out, "step 1" in trap.out) == (2, True, False)
    nothing = await run(
        "prepare", "sell", built.tokens["blacklist_after_buy"], *buy[3:5], "--amount", "all", *at
    )
    assert (nothing.code, nothing.out) == (3, "")


async def test_holders_says_what_is_missing(built: Built) -> None:
    ended = await run("holders", built.tokens["plain"])
    assert ended.code == 3
    assert "index" in ended.err
