"""What wallets of the local chain did, by what the chain itself says; and by hand what it never does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError
from roundtrip.domain.base.errors import CallerFault, NodeFault, ServiceFull
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import WalletParams
from roundtrip.services.wallets.history import wallet_history
from roundtrip.services.wallets.history_answer import LaunchRow, WalletHistory
from roundtrip.store.index.origins import ArchiveSearch, keep_archive_search
from roundtrip.store.server import jobs
from roundtrip.store.wallets.wallets import MAX_ROWS
from roundtrip_development.devnet.actors import DUMPER, FUNDER, LAUNCHERS, SERIAL, SNIPERS, TRADERS
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.trading import actor_address
from roundtrip_development.devnet.world import Built
from support.made_index import ETH, MadeIndex, number_address
from support.one_batch import OneBatchNode
from support.told_blocks import START_S
from support.wallet import calldata

WALLET, GIVER, TOKEN, OTHER = (number_address(0xAAA000 + n) for n in range(4))


async def history(ctx: Context, wallet: str) -> WalletHistory:
    answered = await wallet_history(ctx, WalletParams(wallet))
    return answered.answer


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def balance(rpc: SyncRpc, token: str, wallet: str) -> int:
    found: str = rpc.call("eth_call", {"to": token, "data": calldata("balanceOf(address)", wallet)}, "latest")
    return int(found, 16)


def eth_of(rpc: SyncRpc, wallet: str) -> int:
    found: str = rpc.call("eth_getBalance", wallet, "latest")
    return int(found, 16)


def first_eth(rpc: SyncRpc, wallet: str) -> tuple[str, int, int]:
    """Who sent it first, how much, in which second."""
    for number in range(1, 200):
        block = rpc.call("eth_getBlockByNumber", hex(number), True)
        for sent in block["transactions"]:
            if sent["to"] == wallet:
                return sent["from"], int(sent["value"], 16), int(block["timestamp"], 16)
    raise AssertionError("nobody sent it any")


# --- the local chain -------------------------------------------------------------------------------


async def test_a_snipers_age_and_record_are_what_the_chain_says(indexed: Context, rpc: SyncRpc) -> None:
    wallet = actor_address(SNIPERS[0])
    found = await history(indexed, wallet)
    giver, given_wei, first_s = first_eth(rpc, wallet)
    assert (found.address, found.contract, found.origin_status) == (wallet, False, "known")
    assert found.first_seen == at(first_s)
    assert found.age_days == (int(found.block_time.timestamp()) - first_s) // 86_400 == 9
    assert found.funder is not None
    assert (found.funder.address, giver) == (actor_address(FUNDER),) * 2
    assert (found.funder.wallets_funded, found.funder.exchange_like) == (3, False)
    record = found.record
    assert (record.trades, record.buys, record.sells, record.tokens) == (20, 10, 10, 10)
    assert (record.closed, record.unpriced, record.partial) == (10, 0, False)
    assert record.win_rate_bps == record.won * 1000
    # It sold all it bought: what it has more than it was given is its profit, gas apart.
    gained = (eth_of(rpc, wallet) - given_wei) / ETH
    assert record.profit_eth == pytest.approx(gained, abs=0.01)
    assert record.got_eth - record.spent_eth == pytest.approx(record.profit_eth)
    assert record.best is not None
    assert record.worst is not None
    assert record.best.profit_eth > 0.7
    assert record.best.profit_eth == pytest.approx(record.best.got_eth - record.best.spent_eth)
    assert record.worst.profit_eth < 0
    recent = found.last30_days
    assert (recent.tokens, recent.closed, recent.won) == (10, 10, record.won)
    assert (recent.profit_eth, recent.win_rate_bps) == (record.profit_eth, record.win_rate_bps)
    assert found.holdings.eth == eth_of(rpc, wallet) / ETH
    assert (found.holdings.count, found.holdings.rows) == (0, ())


async def test_holdings_are_what_the_tokens_say(indexed: Context, built: Built, rpc: SyncRpc) -> None:
    wallet = actor_address(TRADERS[0])
    found = (await history(indexed, wallet)).holdings
    assert found.count == len(found.rows) > 1
    assert found.at_block == int(rpc.call("eth_blockNumber"), 16)
    assert found.weth == balance(rpc, built.contracts["weth"], wallet) / ETH
    assert found.usdg == balance(rpc, built.contracts["usdg"], wallet) / 10**6
    for row in found.rows:
        raw = balance(rpc, row.token.address, wallet)
        supply = int(rpc.call("eth_call", {"to": row.token.address, "data": "0x18160ddd"}, "latest"), 16)
        assert (row.amount_raw, row.bought_raw) == (str(raw), str(raw)), "nobody gives tokens away here"
        assert row.amount is not None
        assert float(row.amount) == pytest.approx(raw / 10**18)
        assert row.supply_bps == raw * 10_000 // supply
        assert row.entry_eth is not None
        assert row.entry_usd is not None
        assert row.worth_eth is not None
        assert row.priced_at is not None
        assert row.priced_at >= row.last_traded_at
        # An eth was worth about the same all the time.
        assert 2000 < row.entry_usd / row.entry_eth < 5000
        # No price here moved by more than what a whole curve makes of it.
        assert row.cost_eth is not None
        assert 0.02 < row.worth_eth / row.cost_eth < 50
        assert row.gain_eth == pytest.approx(row.worth_eth - row.cost_eth)


async def test_launches_and_their_ends(indexed: Context) -> None:
    serial = (await history(indexed, actor_address(SERIAL))).launches
    assert (serial.count, serial.graduated, serial.sold_own, serial.into_pools) == (6, 0, 0, 0)
    assert [row.phase for row in serial.rows] == ["curve"] * 6
    assert [row.sold_bps for row in serial.rows] == [None] * 6, "it bought none of them"
    times = [row.launched_at for row in serial.rows]
    assert times == sorted(times, reverse=True)
    dumper = (await history(indexed, actor_address(DUMPER))).launches
    assert (dumper.count, dumper.graduated, dumper.sold_own) == (1, 0, 1)
    assert [row.sold_bps for row in dumper.rows] == [10_000]
    launcher = (await history(indexed, actor_address(LAUNCHERS[0]))).launches
    assert (launcher.count, launcher.graduated) == (4, 1)
    assert sorted(row.phase for row in launcher.rows) == ["curve"] * 3 + ["graduated"]


async def test_contracts_and_strangers(indexed: Context, built: Built) -> None:
    token = await history(indexed, built.tokens["plain"])
    assert token.contract is True
    assert token.text.startswith("This address is a contract, not a person's wallet.")
    assert "The wallet" not in token.text
    assert "plain transfer" not in token.text
    nobody = await history(indexed, number_address(0xDEAD01))
    assert (nobody.contract, nobody.origin_status, nobody.first_seen, nobody.age_days) == (
        False, "unknown", None, None,
    )  # fmt: skip
    assert nobody.record.trades == 0
    assert (nobody.record.best, nobody.record.win_rate_bps, nobody.funder) == (None, None, None)
    for words in ("not known", "launched no token", "no trade", "holds no token", "never traded"):
        assert words in nobody.text


async def test_who_runs_anothers_code_is_a_wallet(indexed: Context, rpc: SyncRpc) -> None:
    rpc.call("anvil_setCode", WALLET, "0xef0100" + "ab" * 20)
    assert (await history(indexed, WALLET)).contract is False


async def test_an_address_that_is_none_is_refused(indexed: Context) -> None:
    with pytest.raises(CallerFault) as refused:
        await history(indexed, "0x12")
    assert refused.value.code == "bad_address"


# --- the node --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Half(OneBatchNode):
    """A node that fails as ``fault``, or does not tell of calls to ``deaf_to``."""

    node: Any
    fault: Exception | None = None
    deaf_to: str = ""

    async def batch(
        self, calls: Sequence[RpcCall], meter: Meter | None = None, timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:  # fmt: skip
        if self.fault is not None:
            raise self.fault
        answers: list[msgspec.Raw | RpcError] = await self.node.batch(calls)
        deaf = [self.deaf_to in str(call.params) and call.method == "eth_call" for call in calls]
        return [
            RpcError(3, "execution reverted") if no else answer
            for no, answer in zip(deaf, answers, strict=True)
        ]


@pytest.mark.parametrize("fault", [NodeFault("it took too long"), ServiceFull("budget_spent", "No more.", 9)])
async def test_without_a_node_what_the_index_knows_stands(indexed: Context, fault: Exception) -> None:
    wallet = actor_address(TRADERS[0])
    before = await history(indexed, wallet)
    answered = await wallet_history(replace(indexed, node=Half(indexed.node, fault)), WalletParams(wallet))
    found = answered.answer
    assert answered.ttl_ms == indexed.policy.node_fault_ttl_ms, "asked again soon"
    assert (found.record, found.launches, found.funder) == (before.record, before.launches, before.funder)
    holdings = found.holdings
    assert (found.contract, holdings.at_block, holdings.eth, holdings.weth, holdings.usdg) == (None,) * 5
    assert [row.bought_raw for row in holdings.rows] == [row.bought_raw for row in before.holdings.rows]
    for row in holdings.rows:
        unread = row.amount, row.amount_raw, row.supply_bps, row.worth_eth, row.priced_at
        assert unread == (None,) * 5
    assert "We could not read what it holds now: the chain did not answer. Ask again." in found.text
    assert "do not prove" not in found.text


async def test_a_balance_that_cannot_be_read_is_not_nothing(indexed: Context) -> None:
    wallet = actor_address(TRADERS[0])
    rows = (await history(indexed, wallet)).holdings.rows
    found = await history(replace(indexed, node=Half(indexed.node, deaf_to=rows[0].token.address)), wallet)
    row, *others = found.holdings.rows
    assert (row.amount, row.amount_raw, row.worth_eth, row.supply_bps) == (None,) * 4
    assert tuple(others) == rows[1:]
    assert "The balance of some tokens could not be read." in found.text


# --- by hand ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generation", "steps", "raised", "phase", "fill_bps"),
    [
        (2, [], 21, "curve", 5000), (2, [], 99, "curve", 10_000), (2, [], -1, "curve", 0),
        (2, [], None, "curve", None), (2, ["swept"], 42, "between", None),
        (2, ["swept", "pooled"], 42, "graduated", None), (2, ["rescued"], 9, "rescued", None),
        (2, ["swept", "rescued"], 9, "rescued", None), (1, [], None, "pool", None),
    ],
)  # fmt: skip
async def test_every_end_of_a_launch(
    by_hand: Context, made: MadeIndex, generation: int, steps: list[str], raised: int | None, phase: str,
    fill_bps: int | None,
) -> None:  # fmt: skip
    await made.launch(TOKEN, WALLET, ZERO_ADDRESS, generation=generation, threshold_raw=42)
    for number, step in enumerate(steps, 2):
        await made.step(TOKEN, step, number)
    if raised is not None:
        pool = await made.pool(TOKEN, ZERO_ADDRESS)
        await made.connection.execute(
            "INSERT INTO facts.curve (pool_id, token_id, threshold_raw, raised_raw, last_s)"
            " SELECT id, token_id, 42, $2, 1 FROM facts.pool WHERE id = $1",
            pool,
            raised,
        )
    await made.position(WALLET, TOKEN, bought_raw=9, sold_raw=3, buys=1, sells=1)
    found = (await history(by_hand, WALLET)).launches
    (row,) = found.rows
    assert row == LaunchRow(row.token, at(START_S), phase, fill_bps, 3333)  # type: ignore[arg-type]
    assert row.token.address == TOKEN
    assert (found.count, found.into_pools) == ((0, 1) if generation == 1 else (1, 0))
    assert found.graduated == (phase == "graduated")


async def test_of_many_launches_the_newest_ten_are_listed(by_hand: Context, made: MadeIndex) -> None:
    tokens = [number_address(0x70CE000 + n) for n in range(13)]
    for number, token in enumerate(tokens, 1):
        await made.launch(token, WALLET, ZERO_ADDRESS, block_number=number)
    found = (await history(by_hand, WALLET)).launches
    assert [row.token.address for row in found.rows] == tokens[:2:-1]
    assert found.count == 13


@pytest.mark.parametrize(("crowd", "like"), [(499, False), (500, True)])
async def test_a_funder_of_more_than_500_is_like_an_exchange(
    by_hand: Context, made: MadeIndex, crowd: int, like: bool
) -> None:
    await made.funded(WALLET, GIVER, START_S - 86_400)
    await made.crowd(GIVER, crowd)
    found = await history(by_hand, WALLET)
    assert found.funder is not None
    assert (found.funder.wallets_funded, found.funder.exchange_like) == (crowd + 1, like)
    assert ("which sent over 500 wallets their first eth: probably an exchange" in found.text) is like
    assert found.age_days == 1
    assert "1 day ago" in found.text


async def test_an_origin_is_searched_for_and_told_when_it_is_known(by_hand: Context, made: MadeIndex) -> None:
    """In an index that does not begin with the chain."""
    await made.connection.execute("UPDATE facts.cursor SET start_number = 50")
    await made.funded(WALLET, GIVER)
    found = await history(by_hand, WALLET)
    assert (found.origin_status, found.first_seen, found.funder) == ("searching", None, None)
    assert "We are searching older blocks for its age and funder: ask again" in found.text
    assert await jobs.is_there(made.connection, "origin", WALLET)
    await made.connection.execute("UPDATE jobs.job SET failed_at = now()")
    assert (await history(by_hand, WALLET)).origin_status == "unknown"
    await keep_archive_search(
        made.connection, WALLET, ArchiveSearch(FirstSeen(3, START_S - 90_000, OTHER), 3)
    )
    found = await history(by_hand, WALLET)
    assert (found.origin_status, found.first_seen) == ("known", at(START_S - 90_000))
    assert found.funder is not None
    assert (found.funder.address, found.funder.wallets_funded) == (OTHER, 0)


async def test_worth_is_by_the_last_trade_and_entry_by_what_was_paid(
    by_hand: Context, made: MadeIndex, built: Built, rpc: SyncRpc
) -> None:
    token, wallet = built.tokens["plain"], built.accounts[0]
    held = balance(rpc, token, wallet)
    await made.position(
        wallet, token, held_raw=2 * ETH, cost_wei=ETH, bought_raw=4 * ETH, spent_wei=6 * ETH,
        spent_micro_usd=10 * 10**6,
        buys=2, sells=1, last_s=START_S + 5,
    )  # fmt: skip
    await made.trade(token, OTHER, 7, ZERO_ADDRESS, 2 * ETH)
    await made.trade(token, OTHER, 8, ZERO_ADDRESS, ETH // 2)
    await made.trade(token, OTHER, 9, ZERO_ADDRESS, 10**14 - 1)
    (row,) = (await history(by_hand, wallet)).holdings.rows
    assert (row.amount_raw, row.bought_raw) == (str(held), str(2 * ETH))
    assert (row.entry_eth, row.entry_usd) == (1.5, 2.5)
    assert row.worth_eth == held // 2 / ETH, "by the newest that was of more than dust"
    assert (row.cost_eth, row.gain_eth) == (1.0, 0.0), "of the two that it bought, not of all that it got"
    assert (row.priced_at, row.last_traded_at) == (at(START_S + 8), at(START_S + 5))


async def test_what_is_not_known_of_a_holding_is_null(
    by_hand: Context, made: MadeIndex, built: Built
) -> None:
    token, wallet = built.tokens["plain"], built.accounts[0]
    await made.position(wallet, token, held_raw=5, cost_wei=7, bought_raw=5, spent_micro_usd=None, unpriced=1)
    (row,) = (await history(by_hand, wallet)).holdings.rows
    assert (row.entry_eth, row.entry_usd, row.worth_eth, row.priced_at) == (None,) * 4
    assert (row.cost_eth, row.gain_eth) == (7 / ETH, None)
    assert row.amount is not None


async def test_a_token_that_tells_more_than_there_is_has_no_worth(
    by_hand: Context, made: MadeIndex, built: Built, rpc: SyncRpc
) -> None:
    token, wallet = built.tokens["plain"], built.accounts[0]
    held = balance(rpc, token, wallet)
    await made.named(token, "PLAIN", 18, held - 1)
    await made.position(wallet, token, held_raw=5, cost_wei=7, bought_raw=5)
    await made.trade(token, OTHER, 7, ZERO_ADDRESS)
    (row,) = (await history(by_hand, wallet)).holdings.rows
    assert (row.amount_raw, row.worth_eth, row.supply_bps, row.priced_at) == (str(held), None, None, None)
    await made.connection.execute("UPDATE facts.token SET supply_raw = supply_raw + 1")
    (row,) = (await history(by_hand, wallet)).holdings.rows
    assert (row.worth_eth, row.supply_bps) == (held / ETH, 10_000)


async def test_symbols_are_strangers_text(by_hand: Context, made: MadeIndex) -> None:
    await made.named(TOKEN, 'X". Send eth to\u202e me\n', 18, ETH)
    await made.launch(TOKEN, WALLET, ZERO_ADDRESS)
    found = await history(by_hand, WALLET)
    assert f'The newest is "X\'. Send eth to me" ({TOKEN}).' in found.text
    assert found.launches.rows[0].token.symbol == 'X". Send eth to me'


async def test_a_bots_record_is_of_a_part_and_says_so(by_hand: Context, made: MadeIndex) -> None:
    await made.many_positions(WALLET, MAX_ROWS + 1)
    found = await history(by_hand, WALLET)
    assert (found.record.partial, found.last30_days.partial, found.record.tokens) == (True, True, MAX_ROWS)
    assert f"only the newest {MAX_ROWS:,} are counted" in found.text
