"""Keys of wallets that are contracts (EIP-1271), and of wallets that run a contract's code (EIP-7702)."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from roundtrip.chain.rpc.client import READ_METHODS
from roundtrip.chain.wallet.signatures import hash_text
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.faulty_node import FaultyNode
from support.fixtures import context_for
from support.keys import (
    Kept,
    Person,
    asked,
    claimed_text,
    code_of,
    kept_of,
    random_context,
    session_code_of,
    session_text_for,
    text_for,
)
from support.nodes import QuirkyNode

SOURCE = Path(__file__).resolve().parents[3] / "contracts" / "truth" / "contract_wallet.vy"
HONEST = 0
LIES = {
    "it reverts": 1, "it burns all gas": 2, "it says one": 3, "the right bytes at the wrong end": 4,
    "something behind the right bytes": 5, "the right bytes and no word": 6, "two words": 7, "nothing": 8,
}  # fmt: skip
# Deploys by CREATE2 the code behind the salt that it is called with.
FACTORY = "0x600f8060095f395ff3" + "5f35602036038060205f375f5ff500"
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
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    made = deployer.create(code, ["address", "uint256"], [owner.address, manner])
    # At an address of its own: the chain is put back after a test, and accounts stay.
    wallet = Person().address
    rpc.call("anvil_setCode", wallet, rpc.call("eth_getCode", made, "latest"))
    rpc.call("evm_mine")
    return wallet


def approve(rpc: SyncRpc, wallet: Address, owner: Person, text: str) -> None:
    """The owner approves the text on the chain, where everyone can see it."""
    hashed = hash_text(text)
    rpc.call("anvil_setBalance", owner.address, hex(10**18))
    rpc.call("anvil_impersonateAccount", owner.address)
    ContractDeployer(rpc, owner.address, gas=200_000).send(wallet, calldata("approveHash(bytes32)", hashed))
    rpc.call("anvil_stopImpersonatingAccount", owner.address)
    rpc.call("evm_mine")


def public_signatures(owner: Person) -> list[str]:
    """What anyone can post once the owner approved: empty, and Safe's form with v = 1."""
    return ["0x", f"0x{'00' * 12}{owner.address[2:]}{'00' * 32}01"]


async def opened(ctx: Context, clock: Clock) -> Context:
    """A context that has seen the newest block."""
    await ctx.heads.refresh()
    return random_context(ctx, clock)


@pytest.fixture
async def deployed(ctx: Context, rpc: SyncRpc, code: str, clock: Clock) -> tuple[Context, Person, Address]:
    """A context that has seen the newest block, an owner, and the owner's honest wallet."""
    owner = Person()
    wallet = wallet_of(rpc, code, owner)
    return await opened(ctx, clock), owner, wallet


async def test_a_contract_wallet_gets_a_key_by_its_owners_signature(
    deployed: tuple[Context, Person, Address], clock: Clock
) -> None:
    shop, owner, wallet = deployed
    text, claim = await claimed_text(shop, wallet)
    signature = owner.sign(text)
    for wrong in (Person().sign(text), owner.sign(text + " "), signature[:-2], "0x"):
        assert await code_of(shop, wallet, wrong, claim=claim) == "bad_signature"
    # Of the oldest text that is good as of the newest.
    clock.now_s += 579
    answer = await asked(shop, "make_key", address=wallet, signature=signature, claim=claim)
    assert answer["mite"]["wallet"] == wallet
    assert await code_of(shop, wallet, signature, claim=claim) == "bad_signature"
    assert (await kept_of(shop, wallet)).keys_made == 1
    # It is the contract's key, and not its owner's.
    assert await kept_of(shop, owner.address) == Kept(0, [], 0)


async def test_a_contract_wallet_of_the_newest_block_gets_a_key(
    ctx: Context, rpc: SyncRpc, code: str, clock: Clock
) -> None:
    """No poll has seen the block that deployed it."""
    shop, owner = await opened(ctx, clock), Person()
    wallet = wallet_of(rpc, code, owner)
    signature = owner.sign(await text_for(shop, wallet))
    assert await code_of(shop, wallet, signature) == "ok"


async def test_a_contract_wallet_gets_a_key_by_the_plain_message(
    deployed: tuple[Context, Person, Address],
) -> None:
    """As the specification has it: signed with personal_sign, and sent without a claim."""
    shop, owner, wallet = deployed
    signature = owner.sign(await text_for(shop, wallet))
    for wrong in (Person().sign(await text_for(shop, wallet)), signature[:-2], "0x"):
        assert await code_of(shop, wallet, wrong) == "bad_signature"
    assert await code_of(shop, wallet, signature) == "ok"
    assert await code_of(shop, wallet, signature) == "bad_signature"


@pytest.mark.parametrize("with_claim", [False, True])
async def test_a_wallet_that_is_not_deployed_signs_as_it_will(
    ctx: Context, rpc: SyncRpc, code: str, clock: Clock, with_claim: bool
) -> None:
    """EIP-6492, before and after its deployment. Before it only with a claim: nobody can ask the contract
    whether others may know what it accepts."""
    owner, deployer = Person(), ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    factory = deployer.create(FACTORY)
    init = bytes.fromhex(code.removeprefix("0x")) + encode(["address", "uint256"], [owner.address, HONEST])
    salt = keccak(owner.address.encode())
    wallet = Address("0x" + keccak(b"\xff" + bytes.fromhex(factory[2:]) + salt + keccak(init))[12:].hex())
    rpc.call("evm_mine")

    def wrap(signature: str, data: bytes) -> str:
        parts = [factory, data, bytes.fromhex(signature[2:])]
        return "0x" + (encode(["address", "bytes", "bytes"], parts) + bytes.fromhex("6492" * 16)).hex()

    async def text_of(shop: Context) -> tuple[str, dict[str, str]]:
        text, claim = await claimed_text(shop, wallet)
        return (text, {"claim": claim}) if with_claim else (await text_for(shop, wallet), {})

    shop = await opened(ctx, clock)
    text, more = await text_of(shop)
    good = owner.sign(text)
    for wrong in (
        good,
        wrap(Person().sign(text), salt + init),
        wrap(good, salt + init[:-1] + b"\1"),
        wrap(good, b""),
    ):
        assert await code_of(shop, wallet, wrong, **more) == "bad_signature"
    clock.now_s += 579
    expected = "ok" if with_claim else "bad_signature"
    assert await code_of(shop, wallet, wrap(good, salt + init), **more) == expected
    assert rpc.call("eth_getCode", wallet, "latest") == "0x"
    deployer.send(factory, "0x" + (salt + init).hex())
    rpc.call("evm_mine")
    assert rpc.call("eth_getCode", wallet, "latest") != "0x"
    shop = await opened(ctx, clock)
    text, more = await text_of(shop)
    assert await code_of(shop, wallet, wrap(owner.sign(text), salt + init), **more) == "ok"


@pytest.mark.parametrize("manner", LIES.values(), ids=LIES)
async def test_what_only_looks_like_a_yes_is_none(
    ctx: Context, rpc: SyncRpc, code: str, clock: Clock, manner: int
) -> None:
    owner = Person()
    wallet = wallet_of(rpc, code, owner, manner)
    shop = await opened(ctx, clock)
    text, claim = await claimed_text(shop, wallet)
    assert await code_of(shop, wallet, owner.sign(text), claim=claim) == "bad_signature"


@pytest.mark.parametrize("bare", CODES.values(), ids=CODES)
async def test_code_of_any_kind_is_no_wallet(ctx: Context, rpc: SyncRpc, clock: Clock, bare: str) -> None:
    wallet = Address("0x" + "c7" * 20)
    rpc.call("anvil_setCode", wallet, bare)
    rpc.call("evm_mine")
    shop = await opened(ctx, clock)
    assert await code_of(shop, wallet, "0x" + "11" * 65, claim="11" * 32) == "bad_signature"


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
        text, claim = await claimed_text(shop, wallet)
        signature = owner.sign(text)
        faulty.fault, faulty.after = fault, after
        with pytest.raises(NodeFault):
            await asked(shop, "make_key", address=wallet, signature=signature, claim=claim)
        faulty.fault = None
        # The failure burnt nothing.
        assert await code_of(shop, wallet, signature, claim=claim) == "ok"


async def test_without_a_node_wallets_still_get_keys_and_contracts_wait(
    rpc: SyncRpc, built: Built, ctx: Context, clock: Clock
) -> None:
    person = Person()
    async with context_for("http://127.0.0.1:1", built, ctx.pool) as found:
        shop = random_context(found, clock)
        text, claim = await claimed_text(shop, person.address)
        assert await code_of(shop, person.address, Person().sign(text), claim=claim) == "upstream"
        assert await code_of(shop, person.address, Person().sign(text)) == "upstream"
        plain = await text_for(shop, person.address)
        assert await code_of(shop, person.address, person.sign(plain)) == "ok"


async def test_a_stranger_costs_two_trips_and_a_contract_three(
    rpc: SyncRpc, built: Built, ctx: Context, code: str, clock: Clock
) -> None:
    owner = Person()
    wallet = wallet_of(rpc, code, owner)
    async with QuirkyNode(rpc.url).running() as node, context_for(node.url, built, ctx.pool) as found:
        assert isinstance(node, QuirkyNode)
        shop = await opened(found, clock)
        text = await text_for(shop, owner.address)
        for address, signature, claim, sent in (
            (owner.address, owner.sign(text), None, []),
            (owner.address, "0x" + "11" * 65, None, [["eth_getCode"]]),
            (wallet, "0x", None, [["eth_getCode"], ["eth_call"] * 10]),
            (wallet, owner.sign(text), None, [["eth_getCode"], ["eth_call"] * 10]),
            (owner.address, "0x" + "11" * 65, "11" * 32, [["eth_getCode"]]),
            (wallet, "0x", "11" * 32, [["eth_getCode"], ["eth_call"] * 10]),
        ):
            node.sent.clear()
            await code_of(shop, address, signature, claim=claim)
            # A head read now comes first, where the node has to be asked at all.
            head = node.sent[: len(node.sent) - len(sent)]
            assert node.sent[len(head) :] == sent
            assert len(head) == bool(sent), head
            assert READ_METHODS.issuperset(method for batch in sent for method in batch)


# --- approvals that everyone can see -----------------------------------------------------------------


@pytest.mark.parametrize("form", [0, 1], ids=["empty", "v = 1"])
async def test_who_sees_an_approval_and_posts_first_gets_no_key(
    deployed: tuple[Context, Person, Address], rpc: SyncRpc, form: int
) -> None:
    shop, owner, wallet = deployed
    text, claim = await claimed_text(shop, wallet)
    # The attacker asks in the same minute, and before the owner, too.
    (thiefs, thiefs_claim), (_, second_claim) = [await claimed_text(shop, wallet) for _ in range(2)]
    assert len({text, thiefs, await text_for(shop, wallet)}) == 3
    approve(rpc, wallet, owner, text)
    await shop.heads.refresh()
    signature = public_signatures(owner)[form]
    for shown in (None, thiefs_claim, second_claim, "00" * 32, claim[::-1], hash_text(text).hex()):
        assert await code_of(shop, wallet, signature, claim=shown) == "bad_signature"
    assert await kept_of(shop, wallet) == Kept(0, [], 0)
    # The attacker's tries burnt nothing; the owner's success spends the approval.
    assert await code_of(shop, wallet, signature, claim=claim) == "ok"
    assert await code_of(shop, wallet, signature, claim=claim) == "bad_signature"


async def test_a_plain_text_approved_in_public_is_worth_nothing(
    deployed: tuple[Context, Person, Address], rpc: SyncRpc
) -> None:
    """The plain text is the same for everyone who asks in that minute."""
    shop, owner, wallet = deployed
    plain = await text_for(shop, wallet)
    _, claim = await claimed_text(shop, wallet)
    approve(rpc, wallet, owner, plain)
    await shop.heads.refresh()
    for signature in (*public_signatures(owner), owner.sign(plain)):
        for shown in (None, claim):
            assert await code_of(shop, wallet, signature, claim=shown) == "bad_signature"


async def test_a_claim_is_of_one_wallet_and_one_purpose(
    ctx: Context, rpc: SyncRpc, code: str, clock: Clock
) -> None:
    owner = Person()
    wallet, other = wallet_of(rpc, code, owner), wallet_of(rpc, code, owner)
    shop = await opened(ctx, clock)
    text, claim = await claimed_text(shop, wallet)
    approve(rpc, wallet, owner, text)
    approve(rpc, other, owner, text)
    await shop.heads.refresh()
    assert await code_of(shop, other, "0x", claim=claim) == "bad_signature"
    assert await session_code_of(shop, wallet, "0x", claim=claim) == "bad_signature"
    # Asking again spoils nothing: the first text stays good until its ten minutes are over.
    await claimed_text(shop, wallet)
    clock.now_s += 579.9
    assert await code_of(shop, wallet, "0x", claim=claim) == "ok"


async def test_an_approval_ends_with_its_ten_minutes(
    deployed: tuple[Context, Person, Address], rpc: SyncRpc, clock: Clock
) -> None:
    shop, owner, wallet = deployed
    text, claim = await claimed_text(shop, wallet)
    approve(rpc, wallet, owner, text)
    await shop.heads.refresh()
    clock.now_s += 580
    assert await code_of(shop, wallet, "0x", claim=claim) == "bad_signature"


async def test_a_session_of_a_contract_wallet_needs_its_claim(
    deployed: tuple[Context, Person, Address], rpc: SyncRpc
) -> None:
    shop, owner, wallet = deployed
    text, claim = await session_text_for(shop, wallet)
    _, thiefs_claim = await session_text_for(shop, wallet)
    approve(rpc, wallet, owner, text)
    await shop.heads.refresh()
    for shown in (None, thiefs_claim):
        assert await session_code_of(shop, wallet, "0x", claim=shown) == "bad_signature"
    assert await code_of(shop, wallet, "0x", claim=claim) == "bad_signature"
    assert await session_code_of(shop, wallet, "0x", claim=claim) == "ok"
    assert await session_code_of(shop, wallet, "0x", claim=claim) == "bad_signature"


async def test_of_fifty_at_once_with_a_public_approval_the_owner_has_the_key(
    deployed: tuple[Context, Person, Address], rpc: SyncRpc
) -> None:
    shop, owner, wallet = deployed
    text, claim = await claimed_text(shop, wallet)
    thieves = [(await claimed_text(shop, wallet))[1] for _ in range(24)]
    approve(rpc, wallet, owner, text)
    await shop.heads.refresh()

    async def sent(claims: list[str | None]) -> list[str]:
        return await asyncio.gather(*(code_of(shop, wallet, "0x", claim=shown) for shown in claims))

    assert await sent([None, *thieves]) == ["bad_signature"] * 25
    mixed = await sent([*thieves, None, *[claim] * 25])
    assert mixed[:25] == ["bad_signature"] * 25
    assert Counter(mixed[25:]) == {"ok": 1, "bad_signature": 24}
    assert (await kept_of(shop, wallet)).keys_made == 1
