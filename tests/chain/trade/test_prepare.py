"""Prepared trades: every code of a request that cannot be met, and what is refused."""

from decimal import Decimal
from typing import Any

import pytest

from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import MULTICALL3, ContractDeployer, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from roundtrip_verify import Network, verify
from support.fixtures import PROJECT
from support.ground import view
from support.signing import Signer, prepared
from support.simulated import simulated
from support.wallet import UnsignedStep, calldata

UNIT = 10**18


@pytest.fixture
def wallet(rpc: SyncRpc, built: Built) -> Signer:
    """Five eth, and some of its first tokens bought with a sixth."""
    made = Signer(rpc, built.contracts, "asker", eth=6)
    made.fill_usdg(200 * 10**6)
    rpc.call("anvil_setBalance", made.address, hex(5 * UNIT))
    return made


def give(rpc: SyncRpc, built: Built, token: str, to: str, raw: int) -> None:
    """From the one who deployed it."""
    owner = ContractDeployer(rpc, built.accounts[0])
    owner.receipt(owner.send(token, calldata("transfer(address,uint256)", to, raw)))


async def code_of(ctx: Context, side: str, token: str, sender: str, **given: object) -> tuple[int, str]:
    """Status and code; of an answer its verdict's."""
    try:
        trade = await prepared(ctx, side, token, sender, **given)
    except RoundtripError as error:
        return error.status, error.code
    return 200, trade.code


# --- amounts ---------------------------------------------------------------------------------------


async def test_a_pool_that_is_thin_for_a_check_takes_a_small_buy(
    ctx: Context, built: Built, wallet: Signer
) -> None:
    trade = await prepared(ctx, "buy", built.tokens["thin"], wallet.address, amount="0.001")
    assert (trade.code, trade.answer["refused"]) == ("ok", False)
    assert wallet.trade(trade).ok
    large = await prepared(ctx, "buy", built.tokens["thin"], wallet.address, amount="0.1")
    assert (large.code, large.answer["refused"]) == ("heavy_loss", True)
    # Its price is the pool's, not that of the check's buy, which moves it.
    small = await prepared(ctx, "sell", built.tokens["thin"], wallet.address, percent=10)
    assert small.code == "ok", small.answer["verdict"]["text"]


async def test_a_buy_that_sells_back_elsewhere_says_so(ctx: Context, built: Built, wallet: Signer) -> None:
    trade = await prepared(ctx, "buy", built.tokens["two_pools"], wallet.address, amount="0.001")
    text = trade.answer["verdict"]["text"]
    assert f"It sells back on another venue, a v3 pool {trade.answer['sellBack']['at']}." in text, text
    assert trade.answer["sellBack"]["at"] not in trade.steps[-1]["does"]


NO_NUMBERS = (
    "", "0", "0.0", "0." + "0" * 30, "-1", "+1", "1e18", "1E2", "1.", ".5", ".", "0x10", "1,5", "1_000",
    " 1", "1 ", "1\n", "\u0661", "inf", "NaN", "1" * 41, "0." + "1" * 41, "max", "ALL", "100%",
)  # fmt: skip


@pytest.mark.parametrize("amount", NO_NUMBERS)
async def test_what_is_no_amount(ctx: Context, built: Built, wallet: Signer, amount: str) -> None:
    for side in ("buy", "sell"):
        for token in (built.tokens["plain"], built.tokens["no_pool"]):
            assert await code_of(ctx, side, token, wallet.address, amount=amount) == (400, "bad_input")


@pytest.mark.parametrize("amount", [5, 0.1, None, True, ["1"], {"amount": "1"}])
async def test_amounts_of_another_shape(ctx: Context, built: Built, wallet: Signer, amount: object) -> None:
    token = built.tokens["plain"]
    assert await code_of(ctx, "buy", token, wallet.address, amount=amount) == (400, "bad_input")


DECIMALS = [
    ("plain", "0.1" + "0" * 17, 200), ("plain", "0.1" + "0" * 17 + "1", 400), ("curve", "000.100", 200),
    ("usdg_pool", "0.100001", 200), ("usdg_pool", "0.1000001", 400), ("usdg_pool", "0.1000000", 200),
    ("v4_usdg", "1.0000001", 400), ("curve_usdg", "1.0000001", 400), ("graduated_usdg", "1.0000001", 400),
    ("v4_usdg", "1.000001", 200), ("v4_weth", "0.1" + "0" * 16 + "1", 200), ("v4_eth", "0.1" + "0" * 30, 200),
]  # fmt: skip


@pytest.mark.parametrize(("key", "amount", "status"), DECIMALS)
async def test_no_more_decimals_than_what_is_paid_has(
    ctx: Context, built: Built, wallet: Signer, key: str, amount: str, status: int
) -> None:
    came = await code_of(ctx, "buy", built.tokens[key], wallet.address, amount=amount)
    assert came == (status, "ok" if status == 200 else "bad_input")


async def test_no_more_decimals_than_the_token_has(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer
) -> None:
    token = built.tokens["six_decimals"]
    give(rpc, built, token, wallet.address, 10**12)
    assert (await prepared(ctx, "sell", token, wallet.address, amount="0.500001")).spend_raw == 500_001
    assert await code_of(ctx, "sell", token, wallet.address, amount="0.5000001") == (400, "bad_input")


@pytest.mark.parametrize("amount", ["5", "4.9999999999999999", "6", "2000000", "2000001", "9" * 40])
@pytest.mark.parametrize("key", ["plain", "v4_eth", "v4_weth", "graduated"])
async def test_more_eth_than_there_is(
    ctx: Context, built: Built, wallet: Signer, key: str, amount: str
) -> None:
    came = await code_of(ctx, "buy", built.tokens[key], wallet.address, amount=amount)
    assert came == (422, "would_fail")


@pytest.mark.parametrize("amount", ["200.000001", "1000000", "9" * 40])
@pytest.mark.parametrize("key", ["usdg_pool", "v4_usdg", "curve_usdg", "graduated_usdg"])
async def test_more_usdg_than_there_is(
    ctx: Context, built: Built, wallet: Signer, key: str, amount: str
) -> None:
    with pytest.raises(CallerFault, match=r"(holds 200|holds that much) usdg") as raised:
        await prepared(ctx, "buy", built.tokens[key], wallet.address, amount=amount)
    assert raised.value.code == "would_fail"


@pytest.mark.parametrize("key", ["plain", "usdg_pool", "v4_usdg", "curve"])
async def test_all_there_is_can_be_spent(ctx: Context, built: Built, wallet: Signer, key: str) -> None:
    """Of usdg to the last unit; of eth but for the gas."""
    amount = "200" if "usdg" in key else "4.99"
    trade = await prepared(ctx, "buy", built.tokens[key], wallet.address, amount=amount, slippageBps=5000)
    if key != "curve":
        assert trade.answer["spend"]["amount"] == amount
    assert trade.answer["refused"] or wallet.trade(trade).ok


@pytest.mark.parametrize(("key", "amount", "wei"), [("plain", "0.1", UNIT // 10), ("usdg_pool", "10", 0)])
async def test_without_eth_for_gas(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, key: str, amount: str, wei: int
) -> None:
    token = built.tokens[key]
    rpc.call("anvil_setBalance", wallet.address, hex(wei))
    assert await code_of(ctx, "buy", token, wallet.address, amount=amount) == (422, "would_fail")
    trade = await prepared(ctx, "buy", token, wallet.address, amount=amount, fund=True)
    rpc.call("anvil_setBalance", wallet.address, hex(UNIT))
    assert wallet.trade(trade).token_raw == trade.raw


@pytest.mark.parametrize("key", ["plain", "usdg_pool", "v4_usdg", "curve_usdg", "curve", "graduated_usdg"])
async def test_a_funded_wallet_needs_nothing(ctx: Context, rpc: SyncRpc, built: Built, key: str) -> None:
    """What is rehearsed for it is what it gets once it has the money."""
    amount = "100" if "usdg" in key else "3"
    empty = Signer(rpc, built.contracts, "empty", wei=0)
    token = built.tokens[key]
    assert await code_of(ctx, "buy", token, empty.address, amount=amount) == (422, "would_fail")
    trade = await prepared(ctx, "buy", token, empty.address, amount=amount, fund=True)
    assert trade.code in ("ok", "high_loss")
    assert trade.trips == 3
    rich = Signer(rpc, built.contracts, "empty", eth=100)
    if "usdg" in key:
        rich.fill_usdg(100 * 10**6)
    done = rich.trade(trade)
    assert (done.ok, done.token_raw, -done.money_raw) == (True, trade.raw, trade.spend_raw)


@pytest.mark.parametrize(
    ("key", "amount"),
    [
        ("plain", "0." + "0" * 17 + "1"), ("v4_eth", "0." + "0" * 17 + "1"),
        ("usdg_pool", "0.000001"), ("v4_usdg", "0.000001"),
        ("curve", "0." + "0" * 17 + "1"),
        ("curve_usdg", "0.000001"),
    ],
)  # fmt: skip
async def test_dust_is_too_small(ctx: Context, built: Built, wallet: Signer, key: str, amount: str) -> None:
    came = await code_of(ctx, "buy", built.tokens[key], wallet.address, amount=amount)
    assert came == (422, "too_small")


async def test_what_buys_a_unit_and_no_minimum_is_too_small(
    ctx: Context, built: Built, wallet: Signer
) -> None:
    """A token of six decimals at 25e-9 eth: one unit arrives, and less than one is no minimum."""
    came = await code_of(ctx, "buy", built.tokens["six_decimals"], wallet.address, amount="0.00000000000004")
    assert came == (422, "too_small")


# --- shares ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("percent", [0, -1, 100.0001, 1e300, float("nan"), float("inf"), "50", True, [50]])
async def test_what_is_no_share(ctx: Context, built: Built, wallet: Signer, percent: object) -> None:
    for more in ({}, {"amount": "all"}):
        given: dict[str, Any] = {"percent": percent, **more}
        assert await code_of(ctx, "sell", built.tokens["plain"], wallet.address, **given) == (
            400,
            "bad_input",
        )


async def test_how_much_must_be_said(ctx: Context, built: Built, wallet: Signer) -> None:
    assert await code_of(ctx, "sell", built.tokens["plain"], wallet.address) == (400, "bad_input")
    assert await code_of(ctx, "buy", built.tokens["plain"], wallet.address) == (400, "bad_input")
    nothing = {"amount": None, "percent": None}
    assert await code_of(ctx, "sell", built.tokens["plain"], wallet.address, **nothing) == (400, "bad_input")


@pytest.mark.parametrize(
    ("given", "raw"),
    [
        ({"percent": 33.3}, 333 * 10**15 + 2), ({"percent": 50}, 500 * 10**15 + 3),
        ({"percent": 100}, UNIT + 7),
        ({"percent": 50, "amount": "1"}, 500 * 10**15 + 3), ({"percent": 100, "amount": "all"}, UNIT + 7),
        ({"amount": "all"}, UNIT + 7), ({"amount": "1.000000000000000007"}, UNIT + 7),
        ({"amount": "1"}, UNIT), ({"percent": 0.1}, 10**15), ({"percent": 1e-7}, 10**9),
        ({"percent": 99.99999999999999}, (UNIT + 7) * 9_999_999_999_999_999 // 10**16),
    ],
)  # fmt: skip
async def test_a_share_is_of_what_is_held(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, given: dict[str, object], raw: int
) -> None:
    give(rpc, built, built.tokens["plain"], wallet.address, UNIT + 7)
    trade = await prepared(ctx, "sell", built.tokens["plain"], wallet.address, **given)
    assert trade.spend_raw == raw
    assert trade.text.startswith("It goes through and brings ")
    assert trade.answer["spend"]["asset"] == built.tokens["plain"]
    done = wallet.trade(trade)
    assert (done.ok, done.token_raw, done.money_raw) == (True, -raw, trade.raw)


async def test_nothing_to_sell(ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer) -> None:
    token = built.tokens["plain"]
    for given in ({"amount": "all"}, {"amount": "1"}, {"percent": 50}):
        came = await code_of(ctx, "sell", token, wallet.address, **given)
        assert came == (422, "nothing_to_sell")
    with pytest.raises(CallerFault) as raised:
        await prepared(ctx, "sell", token, wallet.address, amount="all")
    assert raised.value.message == (
        f"The wallet {wallet.address.lower()} holds none of this token at block "
        f"{ctx.heads.last_number():,}. If you bought it just now, ask again in a second."
    )
    give(rpc, built, token, wallet.address, 1)
    assert await code_of(ctx, "sell", token, wallet.address, percent=99) == (422, "nothing_to_sell")
    # One unit is worth nothing: it would be given away.
    assert await code_of(ctx, "sell", token, wallet.address, amount="all") == (422, "would_fail")


@pytest.mark.parametrize("key", ["plain", "v4_fee_on_sell", "curve"])
@pytest.mark.parametrize("amount", ["1.000000000000000008", "2", "9" * 40])
async def test_more_tokens_than_there_are(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, key: str, amount: str
) -> None:
    if key == "curve":
        buy = await prepared(ctx, "buy", built.tokens[key], wallet.address, amount="0.00000001")
        assert wallet.trade(buy).token_raw == buy.raw
        amount = str(int(amount.split(".")[0]) * 10**4)[:40]
    else:
        give(rpc, built, built.tokens[key], wallet.address, UNIT + 7)
    with pytest.raises(CallerFault, match=r"The wallet holds|No wallet holds") as raised:
        await prepared(ctx, "sell", built.tokens[key], wallet.address, amount=amount)
    assert raised.value.code == "would_fail"


# --- what can be traded ----------------------------------------------------------------------------


@pytest.mark.parametrize("slippage", [0, -1, 5001, 1.5, "100", True])
async def test_slippage_out_of_bounds(ctx: Context, built: Built, wallet: Signer, slippage: object) -> None:
    for side in ("buy", "sell"):
        given = {"amount": "0.1", "slippageBps": slippage}
        came = await code_of(ctx, side, built.tokens["plain"], wallet.address, **given)
        assert came == (400, "bad_input")


@pytest.mark.parametrize("slippage", [1, 100, 5000])
async def test_the_minimum_is_the_rehearsal_less_the_slippage(
    ctx: Context, built: Built, wallet: Signer, slippage: int
) -> None:
    for key in ("plain", "fee_on_buy", "v4_weth", "curve_taxed", "graduated_taxed", "hook_takes_tenth"):
        given = {"amount": "0.1", "slippageBps": slippage}
        trade = await prepared(ctx, "buy", built.tokens[key], wallet.address, **given)
        assert 0 <= trade.raw * (10_000 - slippage) // 10_000 - trade.min_raw <= 1
        assert trade.answer["slippageBps"] == slippage
        assert wallet.trade(trade).token_raw == trade.raw


STRANGE = {
    "nobody": ("0x" + "1" * 40, "not_a_token"), "zero": ("0x" + "0" * 40, "not_a_token"),
    "usdg": ("usdg", "no_route"), "weth": ("weth", "no_route"),
    "a router": ("swapRouter02", "not_a_token"), "a contract": ("not_a_token", "not_a_token"),
    "no pool": ("no_pool", "no_route"), "an empty pool": ("empty_pool", "no_route"),
    "a full curve": ("curve_full", "no_route"), "a swept curve": ("swept", "no_route"),
    "a rescued curve": ("rescued", "no_route"), "a curve of shares": ("curve_other", "no_route"),
    "a pool of shares": ("graduated_other", "no_route"),
}  # fmt: skip


@pytest.mark.parametrize("what", STRANGE)
async def test_what_is_not_traded(ctx: Context, built: Built, wallet: Signer, what: str) -> None:
    name, code = STRANGE[what]
    token = built.contracts.get(name) or built.tokens.get(name) or name
    assert await code_of(ctx, "buy", token, wallet.address, amount="0.1") == (404, code)
    for given in ({"amount": "all"}, {"percent": 50}, {"amount": "1"}):
        assert await code_of(ctx, "sell", token, wallet.address, **given) == (404, "no_route")


async def test_the_wallet_itself_is_no_token(ctx: Context, built: Built, wallet: Signer) -> None:
    came = await code_of(ctx, "buy", wallet.address, wallet.address, amount="0.1")
    assert came == (404, "not_a_token")


async def test_a_pool_with_the_token_alone_is_bought_on(ctx: Context, built: Built, wallet: Signer) -> None:
    trade = await prepared(ctx, "buy", built.tokens["one_sided"], wallet.address, amount="0.1")
    assert wallet.trade(trade).token_raw == trade.raw


@pytest.mark.parametrize("sender", ["plain", "swapRouter02", "v4PoolManager", "multicall3"])
async def test_a_contract_as_wallet_is_answered(ctx: Context, built: Built, sender: str) -> None:
    """It may sign some other way; whether it holds enough is told all the same."""
    wallet = built.contracts.get(sender) or built.tokens.get(sender) or MULTICALL3
    token = built.tokens["plain"]
    assert (await code_of(ctx, "buy", token, wallet, amount="99999"))[1] == "would_fail"
    # Where it takes no eth, only another wallet could sell.
    came = await code_of(ctx, "buy", token, wallet, amount="0.1", fund=True)
    assert came[1] in ("ok", "cannot_sell", "would_fail")


@pytest.mark.parametrize("text", ["", "0x", "0x12", "0x" + "g" * 40, "0x" + "1" * 41, "PLAIN", 5, None])
async def test_what_is_no_address(ctx: Context, built: Built, wallet: Signer, text: Any) -> None:
    token = built.tokens["plain"]
    for side in ("buy", "sell"):
        assert await code_of(ctx, side, text, wallet.address, amount="1") == (400, "bad_input")
        assert await code_of(ctx, side, token, text, amount="1") == (400, "bad_input")
        extra = {"amount": "1", "to": wallet.address}
        assert await code_of(ctx, side, token, wallet.address, **extra) == (400, "bad_input")


# --- traps -----------------------------------------------------------------------------------------

TRAPS_THAT_SELL = {
    "blacklist_after_buy": ("ok", "cannot_sell"), "heavy_fee_on_buy": ("ok", "heavy_fees"),
    "thin": ("ok", "thin_pool"), "hook_fee_jump": ("heavy_loss", "toll_pool"),
    "lying_balance": ("ok", "cannot_sell"),
}  # fmt: skip
"""Who was given these can still sell them: what the sell loses, and what a check says."""
TRAPS_THAT_DO_NOT = (
    "owner_only_sell", "paused", "fee_on_sell", "hook_reverts_on_sell", "hook_allow_list",
    "detect_simulation", "detect_prevrandao", "loops_on_transfer", "megabyte_revert",
)  # fmt: skip


@pytest.mark.parametrize("key", TRAPS_THAT_SELL)
async def test_a_sell_that_goes_through_is_written_whatever_a_check_says(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, key: str
) -> None:
    token = built.tokens[key]
    give(rpc, built, token, wallet.address, 1000 * UNIT)
    trade = await prepared(ctx, "sell", token, wallet.address, amount="1000")
    code, checked = TRAPS_THAT_SELL[key]
    assert (trade.answer["refused"], trade.code) == (False, code)
    assert ("less than what it spends" in trade.text) == (code != "ok")
    assert trade.answer["check"]["verdict"]["code"] == checked
    assert trade.answer["check"]["verdict"]["text"] in trade.text
    steps = [UnsignedStep(one["to"], one["data"], int(one["value"])) for one in trade.steps]
    assert (await simulated(ctx, wallet.address, *steps)).answer["verdict"]["code"] == code
    assert wallet.trade(trade).money_raw == trade.raw


async def test_a_wallet_that_takes_no_eth_cannot_be_funded_with_usdg(ctx: Context, built: Built) -> None:
    locker = built.contracts["launchpadV1Locker"]
    with pytest.raises(CallerFault) as refused:
        await prepared(ctx, "buy", built.contracts["share"], locker, amount="1", fund=True)
    assert refused.value.code == "would_fail"
    assert "could not give this wallet the usdg" in refused.value.message


async def test_a_sell_by_the_collector_of_its_hooks_toll_is_written(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """The toll reaches this seller beside the swap: what the router measures sets the minimum."""
    seller, token = ContractDeployer(rpc, built.accounts[0]), built.tokens["hook_takes_tenth"]
    trade = await prepared(ctx, "sell", token, seller.account, percent=1)
    # One trip more for a pool that reads the block number, and one for the run with its own minimum.
    assert (trade.code, trade.trips) == ("ok", 5)
    assert 0 <= trade.raw * 99 // 100 - trade.min_raw <= 1
    assert (
        trade.answer["check"]["verdict"]["text"]
        == "The pool's hook keeps 19.49 % of a round trip for itself."
    )
    assert trade.answer["check"]["verdict"]["text"] in trade.text
    assert "the swap pays 10.00 % less than the rehearsal brought" in trade.text
    known = ctx.contracts
    network = Network(
        ctx.chain_id, known.weth, known.usdg, known.permit2, known.v3_factory, known.swap_router02,
        known.universal_router,
    )  # fmt: skip
    assert verify(trade.answer, network).findings == ()
    kept = rpc.call("evm_snapshot")
    before, fees = int(rpc.call("eth_getBalance", seller.account, "latest"), 16), 0
    for step in trade.steps:
        receipt = seller.receipt(seller.send(step["to"], step["data"], int(step["value"])))
        fees += int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    came = int(rpc.call("eth_getBalance", seller.account, "latest"), 16) - before + fees
    assert rpc.call("evm_revert", kept)
    assert came // 10**6 == trade.raw * 10 // 9 // 10**6


async def test_a_sell_over_a_cap_says_what_part_of_it_sells(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer
) -> None:
    token = built.tokens["max_transaction"]
    cap_raw = view(rpc, token, "totalSupply()") * view(rpc, token, "MAX_BPS()") // 10_000
    # Of three caps a quarter is the largest part tried that sells, of twenty a hundredth.
    for caps, part_bps in ((3, 2500), (20, 100)):
        give(rpc, built, token, wallet.address, caps * cap_raw)
        held_raw = view(rpc, token, "balanceOf(address)", wallet.address)
        with pytest.raises(CallerFault) as raised:
            await prepared(ctx, "sell", token, wallet.address, amount="all")
        assert raised.value.code == "would_fail"
        assert 'the token says "max transaction". A smaller part sells: ' in raised.value.message
        part = raised.value.message.split("A smaller part sells: ")[1].split(" ")[0]
        assert Decimal(part) * UNIT == held_raw * part_bps // 10_000
        trade = await prepared(ctx, "sell", token, wallet.address, amount=part)
        assert (trade.code, wallet.trade(trade).money_raw) == ("ok", trade.raw)


@pytest.mark.parametrize("key", TRAPS_THAT_DO_NOT)
async def test_a_sell_that_does_not_go_through_would_fail(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, key: str
) -> None:
    token = built.tokens[key]
    if key != "paused":
        give(rpc, built, token, wallet.address, 1000 * UNIT)
        came = await code_of(ctx, "sell", token, wallet.address, amount="all")
        assert came == (422, "would_fail")
    else:
        assert await code_of(ctx, "buy", token, wallet.address, amount="0.1") == (422, "would_fail")


@pytest.mark.parametrize("quote", ["weth", "usdg"])
async def test_what_a_token_pays_beside_the_swap_is_not_counted(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, quote: str
) -> None:
    """A v3 router does not say by how much a swap is too little: its own answer to the rehearsal does."""
    owner = ContractDeployer(rpc, built.accounts[0])
    story = Story("", "", "", pools=(PoolPlan(quote, 3000),))
    token = put_token(owner, built.contracts, story, compile_contract(PROJECT / "contracts/truth/rebates.vy"))
    owner.check_receipts()
    rpc.call("anvil_setBalance", token, hex(1000 * UNIT))
    give(rpc, built, token, wallet.address, 1000 * UNIT)
    trade = await prepared(ctx, "sell", token, wallet.address, amount="all")
    beside = UNIT // 100 if quote == "weth" else 0
    assert wallet.trade(trade).money_raw == trade.raw + beside
    assert 0 <= trade.raw * 99 // 100 - trade.min_raw <= 1


async def test_a_sell_that_a_check_could_not_try_quotes_the_token(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer
) -> None:
    """Nobody can buy it now, so the check asked for no sell; a holder's own transfer is tried."""
    token = built.tokens["paused"]
    give(rpc, built, token, wallet.address, 1000 * UNIT)
    with pytest.raises(CallerFault, match='The trade would fail: the token says "paused"'):
        await prepared(ctx, "sell", token, wallet.address, amount="all")


# --- venues and trips ------------------------------------------------------------------------------


async def test_the_better_pool_for_this_size_is_taken(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer
) -> None:
    """Three trips, however many venues there are."""
    owner = ContractDeployer(rpc, built.accounts[0])
    pools = (
        PoolPlan("weth", 500, 200, 80), PoolPlan("weth", 3000, 20_000, 7000),
        PoolPlan("eth", 10_000, 200, 80, 4), PoolPlan("usdg", 3000, 600_000, 80),
    )  # fmt: skip
    token = put_token(
        owner,
        built.contracts,
        Story("", "", "", pools=pools),
        compile_contract(PROJECT / "contracts/tokens/plain.vy"),
    )
    owner.check_receipts()
    trade = await prepared(ctx, "buy", token, wallet.address, amount="2")
    assert (trade.trips, trade.answer["venue"]["pays"]) == (3, "eth")
    done = wallet.trade(trade)
    assert done.token_raw == trade.raw
    # The deep one gave it: less than a tenth of what lies there went.
    assert trade.raw > 70 * 10**6 * UNIT // 2 // 10
    sell = await prepared(ctx, "sell", token, wallet.address, amount="all")
    assert (sell.trips, sell.answer["venue"]) == (3, trade.answer["venue"])
    assert wallet.trade(sell).money_raw == sell.raw


@pytest.mark.parametrize("side", ["buy", "sell"])
async def test_a_launch_that_was_called_off_is_told_as_a_check_tells_it(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, side: str
) -> None:
    token = built.tokens["rescued"]
    with pytest.raises(CallerFault) as refused:
        await prepared(ctx, side, token, wallet.address, amount="0.1")
    assert refused.value.code == "no_route"
    assert refused.value.message == (await check(ctx, CheckParams(token))).answer.verdict.text
