"""The page of a simulation: its colour is the answer's level."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError, RpcNode
from roundtrip.console.pages.trade import find_hash, read_calls
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.console_house import house_of
from support.keys import random_context

WALLET, STRANGER = "0x" + "2" * 40, "0x" + "d" * 40


async def test_the_colour_is_the_answers_level_and_pasted_calls_run_whole(
    indexed: Context, built: Built
) -> None:
    token, permit2 = built.tokens["plain"], built.contracts["permit2"]
    found = {}
    async with house_of(random_context(indexed, Clock()), Clock()) as house:
        for name, data in (
            ("a stranger", _approve(STRANGER)), ("Permit2", _approve(permit2)), ("nobody", "0xdeadbeef"),
        ):  # fmt: skip
            pasted = json.dumps([{"from": WALLET, "to": token, "input": data}])
            status, page, _ = await house.post("/simulate", {"from": WALLET, "calls": pasted, "fund": "1"})
            shown = re.search(r'class="verdict-md t-(\w+)"><p class="word"><svg.*?</svg> ([^<]+)<', page)
            found[name] = status, shown and shown.groups()
    assert found == {
        "a stranger": (200, ("warn", "Allows everything")),
        "Permit2": (200, ("ok", "Allows everything")),
        "nobody": (200, ("warn", "It would fail")),
    }


def _approve(spender: str) -> str:
    return "0x095ea7b3" + spender[2:].lower().rjust(64, "0") + "f" * 64


class WithoutTracer:
    """A node that serves no tracer, as many."""

    def __init__(self, node: RpcNode) -> None:
        self._node, self.gas = node, list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    async def batch(
        self, calls: Sequence[RpcCall], *more: Any, **named: Any
    ) -> Sequence[msgspec.Raw | RpcError]:
        if any(call.method.startswith("debug_") for call in calls):
            self.gas += [int(cast(dict[str, str], call.params[0])["gas"], 16) for call in calls]
            return [RpcError(code=-32601, message="the method does not exist") for _ in calls]
        return await self._node.batch(calls, *more, **named)


def _tree(page: str) -> str:
    """The part of who calls whom, without its markup."""
    part = page.split('aria-labelledby="calls"')[1].split("</section>")[0]
    return " ".join(re.sub("<[^>]*>", " ", part).split())


async def test_it_tells_who_calls_whom_with_names_and_what_each_call_moves(
    indexed: Context, built: Built
) -> None:
    holder, token, router = built.accounts[0], built.tokens["plain"], indexed.contracts.universal_router
    send = "0xa9059cbb" + STRANGER[2:].rjust(64, "0") + hex(5 * 10**18)[2:].rjust(64, "0")
    wrap = {"to": built.contracts["weth"], "value": hex(10**15), "data": "0xd0e30db0"}
    calls = [{"to": token, "data": send}, wrap, {"to": router, "data": _EMPTY_SWAP}]
    found, without = [], WithoutTracer(indexed.node)
    for node in (indexed.node, cast(RpcNode, without)):
        ctx = replace(random_context(indexed, Clock()), node=node)
        async with house_of(ctx, Clock()) as house:
            for pasted in (calls[:1], calls):
                _, page, _ = await house.post("/simulate", {"from": holder, "calls": json.dumps(pasted)})
                found.append(_tree(page))
    traced, several, untraced, _ = found
    named = f"PLAIN {token[:6]}…{token[-4:]}".lower().replace("plain", "PLAIN")
    assert f"your wallet → {named} transfer 5 {named} : your wallet → 0xdddd…dddd" in traced
    assert "As the node tells it. Calls that only read" in traced
    assert "→ weth deposit with 0.001 ETH" in several
    assert "the Universal Router execute V4 swap" in several
    assert "of a later call only what its own data names" in several
    # The most that the simulation gives a call.
    policy = indexed.policy
    assert without.gas == [policy.buy_gas_limit, policy.trade_gas_budget // 3]
    assert "your wallet → 0x36b5…10ab transfer Only what the calldata itself names" in untraced


_EMPTY_SWAP = "0x24856bc3" + "".join(f"{word:064x}" for word in (0x40, 0x80, 1, 0x10 << 248, 1, 0x20, 0))
"""execute(bytes,bytes[]) with one command that does nothing."""


async def test_a_transaction_s_page_tells_its_calls(indexed: Context, built: Built, rpc: SyncRpc) -> None:
    sender, weth = built.accounts[0], built.contracts["weth"]
    call = {"from": sender, "to": weth, "value": hex(10**15), "data": "0xd0e30db0"}
    tx = str(rpc.call("eth_sendTransaction", call))
    rpc.call("evm_mine")
    async with house_of(random_context(indexed, Clock()), Clock()) as house:
        _, page, _ = await house.get(f"/transaction/{tx}")
        assert f'hx-get="/transaction/{tx}/calls"' in page
        status, page, _ = await house.get(f"/transaction/{tx}/calls")
        assert (status, "the sender → weth deposit with 0.001 ETH" in _tree(page)) == (200, True)


async def test_a_sent_transaction_runs_again_by_its_hash_or_a_link(
    indexed: Context, built: Built, rpc: SyncRpc
) -> None:
    async with house_of(random_context(indexed, Clock()), Clock()) as house:
        sender, to = built.accounts[0], built.contracts["weth"]
        call = {"from": sender, "to": to, "value": hex(10**15), "data": "0xd0e30db0"}
        tx = str(rpc.call("eth_sendTransaction", call))
        rpc.call("evm_mine")
        for pasted in (tx, f"https://scan.example/tx/{tx}?tab=logs", f"look at {tx} please"):
            status, page, _ = await house.post("/simulate", {"calls": pasted})
            assert status == 200
            assert 'class="verdict-md t-' in page
            assert (
                f'name="to" maxlength="42" autocomplete="off" spellcheck="false" value="{to}"' in page.lower()
            )
        _, page, _ = await house.get(f"/simulate?tx={tx}")
        assert 'value="0.001"' in page
        status, page, _ = await house.post("/simulate", {"calls": "0x" + "ab" * 32})
        assert (status, "does not know this transaction" in page) == (404, True)


def test_what_was_pasted_is_a_hash_calldata_or_json() -> None:
    tx = "0x" + "ab" * 32
    assert find_hash(tx) == find_hash(f"https://scan.example/tx/{tx}") == tx
    assert find_hash(json.dumps({"hash": tx, "to": WALLET})) is None
    assert find_hash(f"{tx} {WALLET}") is None
    assert find_hash(WALLET) is None
    assert read_calls({"from": WALLET, "to": STRANGER, "calls": "0xd0e30db0"}) == {
        "from": WALLET, "to": STRANGER, "data": "0xd0e30db0",
    }  # fmt: skip
    own = json.dumps({"from": WALLET, "to": STRANGER, "data": "0x"})
    assert read_calls({"from": "", "calls": own})["from"] == WALLET
