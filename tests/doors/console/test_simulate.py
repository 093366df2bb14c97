"""The page of a simulation: its colour is the answer's level."""

import json
import re

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
        assert 'value="1000000000000000"' in page
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
