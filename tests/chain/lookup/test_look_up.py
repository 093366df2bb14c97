"""What a word is, on the local chain with its index."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest

from roundtrip.chain.holders.token_views import read_views, view_calls
from roundtrip.chain.rpc.client import Node
from roundtrip.domain.base.errors import CallerFault, NodeFault, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.market.look_alikes import ListedToken
from roundtrip.services.lookup.look_up import find
from roundtrip.services.lookup.look_up_answer import LookUpAnswer, LookUpParams
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import tokens
from roundtrip.store.server import connections
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.stories import Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.faulty_node import ANSWER_FAULTS, FaultyNode
from support.fixtures import PROJECT
from support.ground import Ground
from support.holding_asked import copied
from support.mining import by_hand
from support.wallet import UnsignedStep, Wallet

ETH = 10**18
NOBODY = "0x" + "ab" * 20


async def found(ctx: Context, query: str) -> LookUpAnswer:
    return (await find(ctx, LookUpParams(query))).answer


@pytest.fixture
async def read(indexed: Context, built: Built) -> AsyncIterator[Context]:
    """The index with every token's words read; taken away again afterwards."""
    block, limit = indexed.heads.current().block, indexed.policy.read_gas_limit
    async with indexed.pool.acquire() as connection:
        for text in built.tokens.values():
            token = Address(text)
            try:
                views = read_views(await indexed.node.batch(view_calls(token, block, limit)))
            except NodeFault:
                continue
            words = views.symbol, views.name, views.decimals, views.supply_raw
            await tokens.keep(connection, token, *words, block.number)
    yield indexed
    async with indexed.pool.acquire() as connection:
        await connection.execute("DELETE FROM facts.token")
        await connection.execute("UPDATE facts.launch SET symbol_key = NULL")


async def test_a_token_that_looks_like_a_listed_one(read: Context, built: Built) -> None:
    stock = ListedToken("PLAlN", Address("0x" + "d0" * 20))
    ctx = replace(read, stock_tokens=(stock,))
    answer = await found(ctx, built.tokens["plain"])
    assert answer.look_alike_of == stock.address
    assert f'Its symbol looks like that of "PLAlN" ({stock.address}), a listed stock token.' in answer.text
    assert (await found(ctx, built.tokens["curve"])).look_alike_of is None
    assert (await found(ctx, built.accounts[0])).look_alike_of is None


# --- addresses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("story", "stands"),
    [
        ("curve", "curve"),
        ("swept", "graduating"),
        ("graduated", "graduated"),
        ("rescued", "rescued"),
        ("first_fresh", "pool"),
    ],
)
async def test_a_token_of_the_launchpad(indexed: Context, built: Built, story: str, stands: str) -> None:
    answer = await found(indexed, built.tokens[story])
    assert (answer.kind, answer.address) == ("token", built.tokens[story])
    assert answer.launch is not None
    assert answer.launch.deployer == built.accounts[5]
    assert (answer.launch.stands, answer.launch.quote) == (stands, "weth" if stands == "pool" else "eth")
    assert answer.launch.deployer_launches >= 13
    assert answer.token is not None
    assert f'"{answer.token.symbol}" ({built.tokens[story]}) is a token from the launchpad.' in answer.text
    curve = await found(indexed, answer.launch.at)
    assert (curve.kind, curve.address) == ("pool", answer.launch.at)
    assert curve.pool is not None
    assert curve.pool.kind == ("amm_v3" if stands == "pool" else "launchpad_curve")
    assert curve.pool.token.address == built.tokens[story]
    assert curve.pool.opened_at == answer.launch.launched_at
    assert curve.launch == answer.launch
    assert ("This curve has ended" in curve.text) is (stands not in ("curve", "pool"))


async def test_capitals_and_what_is_invisible_are_ignored(indexed: Context, built: Built) -> None:
    plain = built.tokens["plain"]
    odd = "\u200b 0x" + plain[2:].upper() + "\u2069\n"
    assert (await found(indexed, odd)).address == plain


@pytest.mark.parametrize("written", ["0X{}", "{}", "0x{}.", "ethereum:0x{}", "0x{};", "0x{},"])
async def test_an_address_is_known_however_it_was_copied(
    indexed: Context, built: Built, written: str
) -> None:
    plain = built.tokens["plain"]
    assert (await found(indexed, written.format(plain[2:]))).address == plain


@pytest.mark.parametrize(
    "written",
    ['"0x{}"', "`0x{}`", "<0x{}>", "is 0x{} safe?", "https://scan.example/token/0x{}?a=1", "eip155:4663:0x{}",
     "eip155:4663/erc20:0x{}", "ethereum:0x{}@4663", "rhc:0x{}", "scan.example/token/0x{}"],
)  # fmt: skip
async def test_an_address_is_taken_out_of_what_is_pasted(
    indexed: Context, built: Built, written: str
) -> None:
    plain = built.tokens["plain"]
    answer = await found(indexed, written.format(plain[2:]))
    assert (answer.kind, answer.address) == ("token", plain)
    assert "chain 4663" not in answer.text


@pytest.mark.parametrize(
    "written",
    ["eip155:1:{}", "eip155:1/erc20:{}", "eth:{}", "https://etherscan.io/a/{}", "etherscan.io/a/{}"],
)
async def test_another_chain_is_named(indexed: Context, built: Built, written: str) -> None:
    plain = built.tokens["plain"]
    answer = await found(indexed, written.format(plain))
    assert answer.address == plain
    assert answer.text.startswith(
        "The query names chain 1; this is what is on chain 4663, the one served here."
    )


@pytest.mark.parametrize(
    ("address", "kind", "says"),
    [
        ("0x" + "0" * 40, "nothing", "which has no owner"),
        ("0x" + "0" * 36 + "dead", "nothing", "is burned"),
        ("0x" + "0" * 39 + "1", "contract", "a precompile"),
        ("0x" + "0" * 38 + "64", "contract", "a precompile"),
    ],
)
async def test_what_is_nobodys_is_no_wallet(indexed: Context, address: str, kind: str, says: str) -> None:
    answer = await found(indexed, address)
    assert (answer.kind, answer.wallet) == (kind, None)
    assert says in answer.text


async def test_a_token_from_elsewhere(indexed: Context, built: Built) -> None:
    answer = await found(indexed, built.tokens["plain"])
    assert (answer.kind, answer.launch, answer.pool) == ("token", None, None)
    assert answer.token is not None
    assert answer.token.symbol == "PLAIN"
    assert "not launched on the launchpad" in answer.text


async def test_money_and_the_networks_own_contracts(indexed: Context, built: Built) -> None:
    usdg = await found(indexed, built.contracts["usdg"])
    assert (usdg.kind, usdg.text) == ("token", "It is usdg, money on this chain.")
    router = await found(indexed, built.contracts["universalRouter"])
    assert router.kind == "contract"
    assert "the universal router" in router.text


@pytest.mark.parametrize("story", ["not_a_token", "loops_on_balance"])
async def test_what_a_check_calls_no_token_is_none(indexed: Context, built: Built, story: str) -> None:
    odd = await found(indexed, built.tokens[story])
    assert (odd.kind, odd.token) == ("contract", None)
    assert "It does not answer as a token." in odd.text


@pytest.mark.parametrize("story", ["loops_on_views", "loops_on_transfer", "garbage_text", "megabyte_name"])
async def test_a_hostile_token_is_a_token(indexed: Context, built: Built, story: str) -> None:
    assert (await found(indexed, built.tokens[story])).kind == "token"


async def test_wallets(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    deployer = await found(indexed, built.accounts[5])
    assert deployer.kind == "wallet"
    assert deployer.wallet is not None
    assert deployer.wallet.launches >= 13
    assert f"It launched {deployer.wallet.launches} tokens on curves; " in deployer.text
    buyer = await found(indexed, built.accounts[6])
    assert buyer.wallet is not None
    assert (buyer.wallet.has_traded, buyer.wallet.launches) == (True, 0)
    assert buyer.wallet.first_seen is not None
    nobody = await found(indexed, NOBODY)
    assert nobody.wallet is not None
    assert (nobody.kind, nobody.wallet.first_seen, nobody.wallet.has_traded) == ("wallet", None, False)
    unused = "has no code: it is a wallet, or an address that was never used. We know nothing about it."
    assert nobody.text == f"{NOBODY} {unused}"
    rpc.call("anvil_setCode", NOBODY, "0xef0100" + "11" * 20)
    await indexed.heads.refresh()
    rpc.call("evm_mine")
    await indexed.heads.refresh()
    assert "lets a contract act for it" in (await found(indexed, NOBODY)).text


# --- thirty-two bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize("has_index", [True, False])
async def test_a_v4_pool_and_a_transaction(
    indexed: Context, ctx: Context, rpc: SyncRpc, built: Built, has_index: bool
) -> None:
    """Also without an index: the position manager tells the key, and it is made again."""
    asked = indexed if has_index else ctx
    async with indexed.pool.acquire() as connection:
        rows = await connection.fetch(
            "SELECT pool.at, pool.kind, address.address FROM facts.pool AS pool"
            " JOIN facts.address AS address ON address.id = pool.token_id WHERE length(at) = 32 LIMIT 5"
        )
    assert rows
    for row in rows:
        answer = await found(asked, "0x" + row["at"].hex())
        assert (answer.kind, answer.address) == ("pool", None)
        assert answer.pool is not None
        assert (answer.pool.kind, answer.pool.token.address) == (row["kind"], "0x" + row["address"].hex())
        assert (answer.pool.opened_at is None) is not has_index
    wallet = Wallet(rpc, built.contracts, "looked up")
    wallet.send(NOBODY, "0x", ETH)
    tx_hash = rpc.call("eth_getBlockByNumber", "latest", False)["transactions"][-1]
    sent = await found(asked, tx_hash)
    assert sent.transaction is not None
    assert (sent.kind, sent.transaction.hash, sent.transaction.kind) == ("transaction", tx_hash, "transfer")
    assert sent.text == f"It is a transaction. {sent.transaction.text}"
    none = await found(asked, "0x" + "77" * 32)
    assert (none.kind, none.transaction, none.pool) == ("nothing", None, None)


async def test_a_pending_or_unknown_transaction_is_shared_briefly(
    indexed: Context, rpc: SyncRpc, built: Built
) -> None:
    """A transaction in no block, and one that nobody knows, are something else in a moment."""
    wallet = Wallet(rpc, built.contracts, "on its way")
    with by_hand(rpc):
        (tx_hash,) = wallet.queue([UnsignedStep(NOBODY, "0x", 1)], 100_000, 10**10, 10**9)
        for query in (tx_hash, "0x" + "77" * 32):
            answered = await find(indexed, LookUpParams(query))
            assert answered.ttl_ms == indexed.policy.node_fault_ttl_ms < indexed.policy.answer_ttl_ms
        rpc.call("evm_mine")
    mined = await find(indexed, LookUpParams(tx_hash))
    assert mined.ttl_ms == indexed.policy.answer_ttl_ms
    assert mined.answer.transaction is not None
    number = rpc.call("eth_getTransactionReceipt", tx_hash)["blockNumber"]
    assert mined.answer.block == int(number, 16), "newer than the index"


# --- symbols ---------------------------------------------------------------------------------------


async def test_a_symbol_finds_its_only_bearer(read: Context, built: Built) -> None:
    answer = await found(read, "arC")
    assert (answer.kind, answer.address) == ("token", built.tokens["curve"])
    assert answer.bearers is not None
    assert (answer.bearers.others, answer.bearers.strangers) == (0, 0)
    assert "identify a token by its address" in answer.text


@pytest.mark.parametrize("query", ["$arc", "#ARC", '"arc"', "“Arc”", "‘arc’", "«ARC»", '"$arc"'])
async def test_a_symbol_is_known_however_it_is_written(read: Context, built: Built, query: str) -> None:
    answer = await found(read, query)
    assert (answer.kind, answer.address, answer.query) == ("token", built.tokens["curve"], query)


async def test_quotes_and_tags_may_be_a_part_of_the_symbol(read: Context, built: Built) -> None:
    async with read.pool.acquire() as connection:
        await tokens.keep(connection, Address(built.tokens["swept"]), '"ARC"', "x", 18, 1, 10**6)
        await tokens.keep(connection, Address(built.tokens["plain"]), "$ARC", "x", 18, 1, 10**6)
    assert (await found(read, '"arc"')).address == built.tokens["swept"]
    assert (await found(read, "$arc")).address == built.tokens["curve"], "that of no launch comes later"


async def test_of_several_bearers_the_others_are_counted_and_the_oldest_named(
    read: Context, built: Built
) -> None:
    async with read.pool.acquire() as connection:
        for story in ("curve", "graduated", "swept", "plain"):
            await tokens.keep(connection, Address(built.tokens[story]), "C\u200blonex", "x", 18, 1, 10**6)
        rows = await connection.fetch(
            "SELECT address.address FROM facts.launch AS launch JOIN facts.address AS address"
            " ON address.id = launch.token_id WHERE symbol_key = 'clonex' ORDER BY block_number, log_index"
        )
    oldest, newest = ("0x" + rows[place]["address"].hex() for place in (0, -1))
    answer = await found(read, " CLONEX\u2069")
    assert answer.address == newest
    assert answer.bearers is not None
    assert (answer.bearers.others, answer.bearers.strangers) == (2, 1)
    assert answer.bearers.oldest.address == oldest
    assert f"2 other launchpad tokens have it; the oldest is {oldest}, launched on" in answer.text
    assert "1 token from elsewhere also has it." in answer.text


async def test_what_nobody_bears_is_nothing_and_no_error(read: Context, built: Built) -> None:
    answer = await found(read, 'nobody"s')
    assert (answer.kind, answer.address, answer.token) == ("nothing", None, None)
    assert "names of wallets" in answer.text
    assert '"nobody\'s"' in answer.text
    assert "Any token can use any symbol" not in answer.text
    elsewhere = await found(read, "plain")
    assert elsewhere.kind == "nothing"
    assert f"One token from elsewhere has it: {built.tokens['plain']}." in elsewhere.text
    assert elsewhere.text.endswith("Any token can use any symbol: identify a token by its address.")
    usdg = await found(read, "USDG")
    assert f"The real usdg is {built.contracts['usdg']}." in usdg.text
    half = await found(read, "0x" + "1" * 39)
    assert "has 39 hex digits: an address has 40" in half.text


async def test_a_symbol_that_is_not_read_yet_is_not_said_to_be_nobodys(
    indexed: Context, built: Built
) -> None:
    answer = await found(indexed, "arc")
    assert answer.kind == "nothing"
    assert "Of the launchpad tokens that we have read, none has the symbol" in answer.text
    assert "We have not read the symbols of some new tokens yet." in answer.text


async def test_a_word_that_is_longer_than_symbols_is_nobodys(read: Context, built: Built) -> None:
    symbol = "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF"
    async with read.pool.acquire() as connection:
        await tokens.keep(connection, Address(built.tokens["curve"]), symbol, "x", 18, 1, 10**6)
    assert (await found(read, symbol.lower())).address == built.tokens["curve"]
    longer = await found(read, symbol + "g something else")
    assert (longer.kind, longer.token) == ("nothing", None)
    assert "is longer than a symbol here: we keep 32 characters of one." in longer.text


@pytest.mark.parametrize("query", ["\u200b", " \t ", "\u2066\u2069\u3164", "\U000e0041"])
async def test_what_cannot_be_seen_is_bad_input(indexed: Context, query: str) -> None:
    with pytest.raises(CallerFault) as raised:
        await found(indexed, query)
    assert (raised.value.code, raised.value.message) == (
        "bad_input",
        'query must have visible characters: a symbol, an address or a transaction hash, such as "PEPE".',
    )


# --- what cannot be found out ----------------------------------------------------------------------


async def test_without_an_index_a_symbol_and_an_address_are_busy(ctx: Context, built: Built) -> None:
    for query in ("arc", built.tokens["curve"]):
        with pytest.raises(ServiceFull) as raised:
            await found(ctx, query)
        assert raised.value.code == "busy"


@contextlib.asynccontextmanager
async def over(ctx: Context, node: FaultyNode) -> AsyncIterator[Context]:
    async with aiohttp.ClientSession() as session:
        yield replace(ctx, node=Node(node.url, session, 0.5))


# One answer for another of the same shape is a lie that nothing contradicts.
@pytest.mark.parametrize("fault", sorted(ANSWER_FAULTS.keys() - {"swapped answers"}))
async def test_a_faulty_node_changes_no_answer(
    indexed: Context, rpc: SyncRpc, built: Built, fault: str
) -> None:
    async with FaultyNode(rpc.url).running() as node, over(indexed, node) as asked:
        for query in (built.tokens["plain"], built.tokens["curve"], NOBODY):
            node.fault = None
            sound = await found(asked, query)
            node.fault = fault
            try:
                answer = await found(asked, query)
            except NodeFault:
                continue
            assert answer == sound


# --- what the newest block made ----------------------------------------------------------------------


async def test_a_token_of_the_newest_block_is_no_wallet_and_perhaps_launched(
    indexed: Context, rpc: SyncRpc, built: Built
) -> None:
    """Neither a poll nor the index has seen that block. The answer is marked as an absence."""
    before = await find(indexed, LookUpParams(NOBODY))
    assert (before.answer.kind, before.is_absence) == ("wallet", True)
    owner = ContractDeployer(rpc, built.accounts[0])
    story = Story("late", "", "tokens/plain.vy", "Late", "LATE")
    source = compile_contract(PROJECT / "contracts" / story.source)
    token = put_token(owner, built.contracts, story, source)
    owner.check_receipts()
    after = await find(indexed, LookUpParams(token))
    assert (after.answer.kind, after.is_absence) == ("token", True)
    assert "is a token. We know of no launch of it on the launchpad; we have read" in after.answer.text
    assert after.block is not None
    assert before.block is not None
    assert after.block > before.block


async def test_a_launch_of_the_newest_block_is_found_when_the_index_has_it(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str, indexed_url: str
) -> None:
    """The index reads its block while the caller waits."""
    async with (
        copied(database_url, indexed_url) as url,
        connections.create_pool(url, min_size=1, max_size=2) as pool,
    ):
        ground = Ground(ctx, rpc, built, url)
        made = ground.launch(salt=91)
        asked = asyncio.create_task(found(replace(ctx, pool=pool), made.token))
        await ground.follow()
        answer = await asked
    assert answer.launch is not None
    assert "is a token from the launchpad." in answer.text
