"""Keys of wallets that are contracts (EIP-1271), and of wallets that run a contract's code (EIP-7702)."""

from pathlib import Path

import pytest

from conftest import context_for
from roundtrip.chain.rpc import READ_METHODS
from roundtrip.devnet.compile import compile_contract
from roundtrip.devnet.deploy import Deployer
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.errors import NodeFault
from roundtrip.domain.types import Address
from roundtrip.services.context import Context
from support.faulty_node import FaultyNode
from support.keys import Clock, Kept, Person, asked, code_of, kept_of, random_context, text_for
from support.nodes import QuirkyNode

SOURCE = Path(__file__).resolve().parents[2] / "contracts" / "truth" / "contract_wallet.vy"
HONEST = 0
LIES = {
    "it reverts": 1, "it burns all gas": 2, "it says one": 3, "the right bytes at the wrong end": 4,
    "something behind the right bytes": 5, "the right bytes and no word": 6, "two words": 7, "nothing": 8,
}  # fmt: skip
CODES = {
    "it stops": "0x00",
    "it is no code": "0xfe",
    "it says what it is asked": "0x365f5f37365ff3",
    "it says half a megabyte": "0x6207a1205ff3",
    "it reverts with half a megabyte": "0x6207a1205ffd",
    # PUSH4 of the right bytes, shifted to the front, stored, and reverted with.
    "it reverts with the right bytes": "0x631626ba7e60e01b5f5260205ffd",
}


@pytest.fixture(scope="session")
def code() -> str:
    return compile_contract(SOURCE)


def wallet_of(rpc: SyncRpc, code: str, owner: Person, manner: int = HONEST) -> Address:
    """A contract that is the owner's wallet."""
    deployer = Deployer(rpc, rpc.call("eth_accounts")[0])
    made = deployer.create(code, ["address", "uint256"], [owner.address, manner])
    # At an address of its own: the chain is put back after a test, and accounts stay.
    wallet = Person().address
    rpc.call("anvil_setCode", wallet, rpc.call("eth_getCode", made, "latest"))
    rpc.call("evm_mine")
    return wallet


async def opened(ctx: Context, clock: Clock) -> Context:
    """A context that has seen the newest block."""
    await ctx.heads.refresh()
    return random_context(ctx, clock)


async def test_a_contract_wallet_gets_a_key_by_its_owners_signature(
    ctx: Context, rpc: SyncRpc, code: str, clock: Clock
) -> None:
    owner = Person()
    wallet = wallet_of(rpc, code, owner)
    shop = await opened(ctx, clock)
    text = await text_for(shop, wallet)
    signature = owner.sign(text)
    for wrong in (Person().sign(text), owner.sign(text + " "), signature[:-2], "0x"):
        assert await code_of(shop, wallet, wrong) == "bad_signature"
    # Of the oldest text that is good as of the newest.
    clock.now_s += 579
    answer = await asked(shop, "make_key", address=wallet, signature=signature)
    assert answer["mite"]["wallet"] == wallet
    assert await code_of(shop, wallet, signature) == "bad_signature"
    assert (await kept_of(shop, wallet)).keys_made == 1
    # It is the contract's key, and not its owner's.
    assert await kept_of(shop, owner.address) == Kept(0, [], 0)


@pytest.mark.parametrize("manner", LIES.values(), ids=LIES)
async def test_what_only_looks_like_a_yes_is_none(
    ctx: Context, rpc: SyncRpc, code: str, clock: Clock, manner: int
) -> None:
    owner = Person()
    wallet = wallet_of(rpc, code, owner, manner)
    shop = await opened(ctx, clock)
    assert await code_of(shop, wallet, owner.sign(await text_for(shop, wallet))) == "bad_signature"


@pytest.mark.parametrize("bare", CODES.values(), ids=CODES)
async def test_code_of_any_kind_is_no_wallet(ctx: Context, rpc: SyncRpc, clock: Clock, bare: str) -> None:
    wallet = Address("0x" + "c7" * 20)
    rpc.call("anvil_setCode", wallet, bare)
    rpc.call("evm_mine")
    shop = await opened(ctx, clock)
    assert await code_of(shop, wallet, "0x" + "11" * 65) == "bad_signature"


async def test_a_wallet_with_a_contracts_code_signs_for_itself(
    ctx: Context, rpc: SyncRpc, code: str, clock: Clock
) -> None:
    person, other = Person(), Person()
    rpc.call("anvil_setCode", person.address, "0xef0100" + wallet_of(rpc, code, other)[2:])
    rpc.call("evm_mine")
    shop = await opened(ctx, clock)
    text = await text_for(shop, person.address)
    assert await code_of(shop, person.address, Person().sign(text)) == "bad_signature"
    assert await code_of(shop, person.address, person.sign(text)) == "ok"


@pytest.mark.parametrize("after", [0, 1], ids=["the code", "the contract"])
@pytest.mark.parametrize("fault", ["all errors", "all null", "nonsense", "status 500", "cut off", "numbers"])
async def test_a_node_that_fails_is_no_bad_signature(
    rpc: SyncRpc,
    built: Built,
    ctx: Context,
    code: str,
    clock: Clock,
    faulty: FaultyNode,
    fault: str,
    after: int,
) -> None:
    owner = Person()
    wallet = wallet_of(rpc, code, owner)
    async with context_for(faulty.url, built, ctx.pool) as found:
        shop = await opened(found, clock)
        signature = owner.sign(await text_for(shop, wallet))
        faulty.fault, faulty.after = fault, after
        with pytest.raises(NodeFault):
            await asked(shop, "make_key", address=wallet, signature=signature)
        faulty.fault = None
        # The failure burnt nothing.
        assert await code_of(shop, wallet, signature) == "ok"


async def test_without_a_node_wallets_still_get_keys_and_contracts_wait(
    rpc: SyncRpc, built: Built, ctx: Context, clock: Clock
) -> None:
    person = Person()
    async with context_for("http://127.0.0.1:1", built, ctx.pool) as found:
        shop = random_context(found, clock)
        text = await text_for(shop, person.address)
        assert await code_of(shop, person.address, Person().sign(text)) == "upstream"
        assert await code_of(shop, person.address, person.sign(text)) == "ok"


async def test_a_wallet_costs_no_trip_a_stranger_one_and_a_contract_two(
    rpc: SyncRpc, built: Built, ctx: Context, code: str, clock: Clock
) -> None:
    owner = Person()
    wallet = wallet_of(rpc, code, owner)
    async with QuirkyNode(rpc.url).running() as node, context_for(node.url, built, ctx.pool) as found:
        assert isinstance(node, QuirkyNode)
        shop = await opened(found, clock)
        text = await text_for(shop, owner.address)
        for address, signature, sent in (
            (owner.address, owner.sign(text), []),
            (owner.address, "0x" + "11" * 65, [["eth_getCode"]]),
            (wallet, "0x", [["eth_getCode"], ["eth_call"] * 10]),
        ):
            node.sent.clear()
            await code_of(shop, address, signature)
            assert node.sent == sent
            assert READ_METHODS.issuperset(method for batch in sent for method in batch)
