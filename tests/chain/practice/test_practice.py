"""Practice trades on the real local chain: what a real wallet would have got is what is booked."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault, NodeFault, RoundtripError
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.practice.practice import WEEK_S
from roundtrip.services.practice.account import practice_trades, value_account
from roundtrip.services.practice.pricing import PricedBuy, price_buy
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.valuation.holdings import SellValue
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.practising import BUYS, UNIT, VENUE, Appraiser, bought, conserved, new_account, read, sold
from support.signing import Signer, prepared

WHY = 'Selling this much of it fails at this block with "No!".'


async def failed(what: Any) -> RoundtripError:
    with pytest.raises(RoundtripError) as raised:
        await what
    return raised.value


async def read_account(shop: Context, account: Account, appraiser: Appraiser) -> dict[str, Any]:
    return read(await value_account(shop, account, appraiser, Meter()))


async def ledger(shop: Context, account: Account) -> list[dict[str, Any]]:
    found = read((await practice_trades(shop, Nothing(), account)).answer)["trades"]
    assert isinstance(found, list)
    async with shop.pool.acquire() as connection:
        await conserved(connection, account.id)
    return found


# --- buys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["plain", "fee_on_buy", "v4_eth", "v4_weth", "curve", "graduated"])
async def test_a_buy_is_what_a_real_wallet_gets(
    shop: Context, rpc: SyncRpc, built: Built, account: Account, key: str
) -> None:
    token = built.tokens[key]
    answer = await bought(shop, account, token, "0.1")
    wallet = Signer(rpc, built.contracts, "buyer", eth=3)
    trade = await prepared(shop, "buy", token, wallet.address, amount="0.1", slippageBps=5000)
    assert int(answer["receivedRaw"]) == wallet.trade(trade).token_raw
    assert (answer["sellsBack"], answer["verdict"]["code"]) == ("yes", trade.code)
    # A prepared trade has more to say: what its minimum is worth.
    assert trade.text.startswith(answer["verdict"]["text"])
    assert (answer["spent"], answer["ethLeft"]) == ("0.1", "0.9")
    assert (answer["block"], answer["venue"]["kind"]) == (
        trade.answer["block"], trade.answer["venue"]["kind"],
    )  # fmt: skip
    joined = "but" if key == "fee_on_buy" else "and"
    assert f". It goes through, {joined} what it buys sold straight back for a loss of " in answer["text"]


async def test_what_is_paid_in_usdg_costs_eth_at_the_checks_rate(
    shop: Context, rpc: SyncRpc, built: Built, account: Account
) -> None:
    answer = await bought(shop, account, built.tokens["usdg_pool"], "0.1")
    per_eth = shop.heads.current().market.usdg_per_eth_raw
    assert isinstance(per_eth, int)
    wallet = Signer(rpc, built.contracts, "buyer", eth=3)
    amount = str(Decimal(per_eth // 10) / 10**6)
    trade = await prepared(shop, "buy", built.tokens["usdg_pool"], wallet.address, amount=amount, fund=True)
    assert (int(answer["receivedRaw"]), answer["venue"]["pays"]) == (trade.raw, "usdg")
    assert answer["spent"] == "0.1"


async def test_a_trap_is_bought_and_said_to_be_one(shop: Context, built: Built, account: Account) -> None:
    answer = await bought(shop, account, built.tokens["owner_only_sell"], "0.1")
    assert (answer["sellsBack"], answer["verdict"]["code"], answer["ethLeft"]) == ("no", "cannot_sell", "0.9")
    assert "You cannot sell it straight back. " in answer["text"]


NOT_BOUGHT = [
    ("plain", "0.0009999", "too_small"), ("plain", "1.000000000000000001", "would_fail"),
    ("plain", "0", "bad_input"), ("plain", "0.1" + "0" * 17 + "1", "bad_input"),
    ("no_pool", "0.1", "no_route"), ("not_a_token", "0.1", "not_a_token"), ("paused", "0.1", "would_fail"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "eth", "code"), NOT_BOUGHT)
async def test_what_is_not_bought(
    shop: Context, built: Built, account: Account, key: str, eth: str, code: str
) -> None:
    assert (await failed(bought(shop, account, built.tokens[key], eth))).code == code
    assert await ledger(shop, account) == []


async def test_money_is_no_token(shop: Context, built: Built, account: Account) -> None:
    assert (await failed(bought(shop, account, built.contracts["weth"], "0.1"))).code == "no_route"


async def test_two_buys_in_ten_minutes_bring_what_one_would(
    shop: Context, clock: Clock, built: Built, account: Account
) -> None:
    for key in ("plain", "curve", "usdg_pool"):
        other, token = await new_account(shop), built.tokens[key]
        parts = [await bought(shop, account, token, eth) for eth in ("0.1", "0.05", "0.15")]
        whole = await bought(shop, other, token, "0.3")
        assert sum(int(part["receivedRaw"]) for part in parts) == int(whole["receivedRaw"])
        assert int(parts[1]["receivedRaw"]) * 2 < int(parts[0]["receivedRaw"])
        assert Decimal(parts[2]["position"]["cost"]) == Decimal("0.3")


async def test_a_curve_takes_no_more_than_it_has_left(shop: Context, built: Built, account: Account) -> None:
    token, other = built.tokens["curve_nearly_full"], await new_account(shop)
    whole = await bought(shop, other, token, "1")
    assert Decimal("0.001") < Decimal(whole["spent"]) < 1
    assert Decimal(whole["ethLeft"]) == 1 - Decimal(whole["spent"])
    first = str((Decimal(whole["spent"]) / 2).quantize(Decimal("1e-18")))
    parts = [await bought(shop, account, token, first), await bought(shop, account, token, "0.5")]
    assert sum(int(part["receivedRaw"]) for part in parts) == int(whole["receivedRaw"])
    assert sum(Decimal(part["spent"]) for part in parts) == Decimal(whole["spent"])
    error = await failed(bought(shop, account, token, "0.1"))
    assert (error.code, "brings nothing" in error.message) == ("would_fail", True)
    error = await failed(bought(shop, account, built.tokens["curve_all_but_full"], "0.1"))
    assert error.code == "too_small"
    assert error.message.startswith("Its curve takes at most about 0.0003")


async def test_a_position_is_no_more_than_its_venue_holds(
    shop: Context, rpc: SyncRpc, built: Built, account: Account
) -> None:
    token = built.tokens["plain"]
    await bought(shop, account, token, "0.1")
    async with shop.pool.acquire() as connection:
        await connection.execute("UPDATE accounts.practice_position SET held_raw = 10::numeric ^ 40")
        error = await failed(bought(shop, account, token, "0.1"))
        await connection.execute("DELETE FROM accounts.practice_position WHERE held_raw > 10::numeric ^ 39")
    assert error.code == "would_fail"
    assert error.message.startswith("Its venue holds ")


# --- sells -----------------------------------------------------------------------------------------


async def test_a_position_from_its_first_buy_to_its_last_sell(
    shop: Context, built: Built, account: Account
) -> None:
    token, appraiser = built.tokens["plain"], Appraiser()
    one = await bought(shop, account, token, "0.3")
    held = int(one["receivedRaw"])
    appraiser.says = SellValue(UNIT // 4, VENUE)
    part = await sold(shop, account, token, appraiser, percent=50)
    (holding,) = appraiser.asked[0]
    assert (holding.token, holding.amount_raw, holding.before_raw) == (token, held // 2, 0)
    assert (holding.slot is not None, holding.seller) == (True, None)
    assert (part["soldRaw"], part["got"], part["cost"], part["profit"]) == (
        str(held // 2), "0.25", "0.15", "0.1",
    )  # fmt: skip
    assert (part["counted"], part["ethLeft"], part["position"]["cost"]) == (True, "0.95", "0.15")
    appraiser.says = SellValue(UNIT // 10, VENUE)
    rest = await sold(shop, account, token, appraiser)
    # What was just sold goes first.
    assert appraiser.asked[1][0].before_raw == held // 2
    assert (rest["profit"], rest["position"], rest["ethLeft"]) == ("-0.05", None, "1.05")
    assert (rest["counted"], rest["whyNot"]) == (False, "it lost")
    assert (await failed(sold(shop, account, token, appraiser))).code == "nothing_to_sell"
    found = await read_account(shop, account, appraiser)
    assert (found["eth"], found["worth"], found["positions"]) == ("1.05", "1.05", [])
    assert (found["profitThisWeek"], found["sellsThisWeek"]) == ("0.05", 2)
    lines = await ledger(shop, account)
    assert [line["side"] for line in lines] == ["sell", "sell", "buy"]
    assert [line["profit"] for line in lines] == ["-0.05", "0.1", None]
    head = shop.heads.current().block
    assert {(line["block"], line["blockHash"]) for line in lines} == {(head.number, head.hash)}


async def test_what_cannot_be_sold_is_not_and_is_written_off_on_monday(
    shop: Context, clock: Clock, built: Built, account: Account
) -> None:
    token, appraiser = built.tokens["owner_only_sell"], Appraiser()
    await bought(shop, account, token, "1")
    # Worth would pay: the check has the last word.
    error = await failed(sold(shop, account, token, appraiser))
    assert error.code == "would_fail"
    assert error.message.startswith("Nothing was sold. You can buy it but not sell it: ")
    assert [one["stuckAt"] for one in (await read_account(shop, account, appraiser))["positions"]] != [None]
    clock.now_s += WEEK_S
    found = await read_account(shop, account, appraiser)
    assert (found["eth"], found["given"], found["positions"]) == ("1", "2", [])
    assert "This includes Monday's gift of 1 practice eth." in found["text"]
    assert [line["side"] for line in await ledger(shop, account)] == ["buy"]
    await bought(shop, account, built.tokens["plain"], "0.1")
    lines = await ledger(shop, account)
    assert [line["side"] for line in lines] == ["buy", "gift", "written_off", "buy"]
    assert [line["profit"] for line in lines] == [None, None, "-1", None]


async def test_what_the_chain_refuses_at_a_block_is_not_stuck(
    shop: Context, built: Built, account: Account
) -> None:
    token, appraiser = built.tokens["plain"], Appraiser(RefusedCall("sell", "No\u200b!", 0))
    await bought(shop, account, token, "0.2")
    error = await failed(sold(shop, account, token, appraiser))
    assert (error.code, error.message) == ("would_fail", WHY)
    (one,) = (await read_account(shop, account, appraiser))["positions"]
    assert (one["worth"], one["gain"], one["why"]) == (None, None, WHY)
    assert one["stuckAt"] is None
    appraiser.says = SellValue(UNIT // 10, VENUE)
    await sold(shop, account, token, appraiser, percent=10)
    (one,) = (await read_account(shop, account, appraiser))["positions"]
    assert (one["stuckAt"], one["worth"]) == (None, "0.1")
    # A part of the position took its part of the cost, rounded down.
    assert Decimal(one["gain"]).quantize(Decimal("1e-9")) == Decimal("-0.08")


@pytest.mark.parametrize("says", [RefusedCall("sell", "No!", 0), Missing("token", "it was silent")])
async def test_what_never_sells_as_a_whole_is_given_up_after_a_week(
    shop: Context, clock: Clock, built: Built, account: Account, says: RefusedCall | Missing
) -> None:
    token, appraiser = built.tokens["plain"], Appraiser(says)
    await bought(shop, account, token, "1")

    async def stuck(percent: float = 100) -> bool:
        assert (await failed(sold(shop, account, token, appraiser, percent))).code == "would_fail"
        (one,) = (await read_account(shop, account, appraiser))["positions"]
        return one["stuckAt"] is not None

    assert not await stuck(1e-20)
    clock.now_s += WEEK_S
    # No part of it begins the week.
    assert not await stuck()
    clock.now_s += WEEK_S - 1
    assert not await stuck()
    clock.now_s += 1
    assert not await stuck(50)
    assert await stuck()
    clock.now_s += WEEK_S
    found = await read_account(shop, account, appraiser)
    assert (found["eth"], found["given"], found["positions"]) == ("1", "2", [])
    await bought(shop, account, token, "0.1")
    assert [line["side"] for line in await ledger(shop, account)] == ["buy", "gift", "written_off", "buy"]


async def test_a_sell_that_goes_through_begins_the_week_again(
    shop: Context, rpc: SyncRpc, clock: Clock, built: Built, account: Account
) -> None:
    token, appraiser = built.tokens["plain"], Appraiser(RefusedCall("sell", "No!", 0))
    await bought(shop, account, token, "0.5")
    await failed(sold(shop, account, token, appraiser))
    appraiser.says = SellValue(UNIT // 10, VENUE)
    await sold(shop, account, token, appraiser, percent=10)
    clock.now_s += WEEK_S
    rpc.call("evm_mine")
    await shop.heads.refresh()
    appraiser.says = RefusedCall("sell", "No!", 0)
    await failed(sold(shop, account, token, appraiser))
    (one,) = (await read_account(shop, account, appraiser))["positions"]
    assert one["stuckAt"] is None


async def test_after_another_sell_nothing_is_known_of_the_whole(
    shop: Context, clock: Clock, built: Built, account: Account
) -> None:
    token, appraiser = built.tokens["plain"], Appraiser(SellValue(UNIT // 10, VENUE))
    await bought(shop, account, token, "0.5")
    await sold(shop, account, token, appraiser, percent=10)
    appraiser.says = RefusedCall("sell", "No!", 0)
    await failed(sold(shop, account, token, appraiser))
    clock.now_s += WEEK_S
    await failed(sold(shop, account, token, appraiser))
    (one,) = (await read_account(shop, account, appraiser))["positions"]
    assert one["stuckAt"] is None


async def test_a_part_is_no_smaller_than_a_buy_and_all_may_be_sold(
    shop: Context, built: Built, account: Account
) -> None:
    token, appraiser = built.tokens["plain"], Appraiser(SellValue(UNIT // 1000 - 1, VENUE))
    await bought(shop, account, token, "0.2")
    error = await failed(sold(shop, account, token, appraiser, percent=99))
    assert (error.code, error.message) == (
        "too_small",
        "That part brings about 0.000999999 eth, and a part must bring 0.001: sell more, or all of it.",
    )
    assert (await sold(shop, account, token, appraiser))["got"] == "0.000999999999999999"
    await bought(shop, account, token, "0.2")
    appraiser.says = SellValue(UNIT // 1000, VENUE)
    assert (await sold(shop, account, token, appraiser, percent=1))["got"] == "0.001"


@pytest.mark.parametrize(("fault", "code"), [("node", "upstream"), ("token", "would_fail")])
async def test_what_could_not_be_found_out_is_never_booked(
    shop: Context, built: Built, account: Account, fault: Any, code: str
) -> None:
    token, appraiser = built.tokens["plain"], Appraiser(Missing(fault, "it was silent"))
    await bought(shop, account, token, "0.2")
    error = await failed(sold(shop, account, token, appraiser))
    assert error.code == code
    assert isinstance(error, NodeFault if fault == "node" else CallerFault)
    (one,) = (await read_account(shop, account, appraiser))["positions"]
    assert (one["worth"], one["stuckAt"], one["cost"]) == (None, None, "0.2")
    assert one["why"] == "We could not find out what it sells for: it was silent."
    assert [line["side"] for line in await ledger(shop, account)] == ["buy"]


async def test_many_positions_are_valued_in_one_trip(shop: Context, built: Built, account: Account) -> None:
    appraiser = Appraiser(SellValue(UNIT // 5, VENUE))
    for key in ("plain", "usdg_pool", "v4_eth"):
        await bought(shop, account, built.tokens[key], "0.1")
    found = await read_account(shop, account, appraiser)
    assert [len(trip) for trip in appraiser.asked] == [3]
    assert (found["eth"], found["worth"]) == ("0.7", "1.3")
    assert [one["gain"] for one in found["positions"]] == ["0.1"] * 3


async def test_a_new_account_is_read_and_not_made(shop: Context, account: Account) -> None:
    found = await read_account(shop, account, Appraiser())
    assert (found["eth"], found["given"], found["worth"], found["sellsThisWeek"]) == ("1", "1", "1", 0)
    assert await shop.pool.fetchval(
        "SELECT count(*) FROM accounts.practice_account WHERE account_id = $1", account.id
    ) == 0  # fmt: skip


# --- at once ---------------------------------------------------------------------------------------


async def test_buys_of_other_tokens_do_not_wait_for_each_other(
    shop: Context, built: Built, account: Account
) -> None:
    keys = ("plain", "curve", "usdg_pool", "v4_eth", "v4_weth", "two_pools", "six_decimals", "graduated")
    answers = await asyncio.gather(*(bought(shop, account, built.tokens[key], "0.1") for key in keys))
    left = sorted(Decimal(one["ethLeft"]) for one in answers)
    assert left == [Decimal(tenths) / 10 for tenths in range(2, 10)]
    more = [bought(shop, account, built.tokens[key], "0.15") for key in keys]
    # Each had the eth when it was asked for, and only one of them when it was booked.
    came = await asyncio.gather(*more, return_exceptions=True)
    assert sum(isinstance(one, dict) for one in came) == 1
    assert {one.code for one in came if isinstance(one, RoundtripError)} == {"would_fail"}
    assert len(await ledger(shop, account)) == 9


@pytest.mark.parametrize("between", [0, 1, 2])
async def test_what_was_traded_meanwhile_is_priced_once_more(
    shop: Context, built: Built, account: Account, between: int
) -> None:
    token, earlier, left = built.tokens["plain"], [], [None] * between

    async def price(*given: Any) -> PricedBuy:
        earlier.append(given[2].earlier_wei)
        found = await price_buy(*given)
        if left:
            left.pop()
            await bought(shop, account, token, "0.1")
        return found

    means = replace(BUYS, price=price)
    if between == 2:
        error = await failed(bought(shop, account, token, "0.1", means=means))
        assert (error.code, "at the same time" in error.message) == ("busy", True)
    else:
        await bought(shop, account, token, "0.1", means=means)
    assert earlier == [UNIT // 10 * number for number in range(len(earlier))]
    assert len(earlier) == min(between + 1, 2)
    assert len(await ledger(shop, account)) == min(between + 1, 2)


# --- repeats ---------------------------------------------------------------------------------------


async def test_a_repeat_gives_the_first_answer_and_asks_nobody(
    shop: Context, built: Built, account: Account
) -> None:
    token, appraiser = built.tokens["plain"], Appraiser()
    first = await bought(shop, account, token, "0.1", once="a")
    assert await bought(shop, account, token.upper().replace("0X", "0x"), "0.10", once="a") == first
    for other in (
        bought(shop, account, token, "0.2", once="a"),
        sold(shop, account, token, appraiser, once="a"),
    ):
        error = await failed(other)
        assert (error.code, "another request" in error.message) == ("bad_input", True)
    done = await sold(shop, account, token, appraiser, once="b")
    assert await sold(shop, account, token, appraiser, once="b") == done
    assert len(appraiser.asked) == 1
    assert [line["side"] for line in await ledger(shop, account)] == ["sell", "buy"]
    # Another account's keys are its own.
    assert (await bought(shop, await new_account(shop), token, "0.1", once="a"))["id"] != first["id"]


async def test_a_lost_node_books_nothing(shop: Context, built: Built, account: Account) -> None:
    class Silent:
        async def batch(self, *asked: object, **how: object) -> None:
            raise NodeFault("it is gone")

        async def batches(self, *asked: object, **how: object) -> None:
            raise NodeFault("it is gone")

    away = replace(shop, node=Silent())  # type: ignore[arg-type]
    assert (await failed(bought(away, account, built.tokens["plain"], "0.1", once="a"))).code == "upstream"
    assert await ledger(shop, account) == []
    first = await bought(shop, account, built.tokens["plain"], "0.1", once="a")
    assert first["ethLeft"] == "0.9"

    async def unheard() -> None:
        raise NodeFault("the node has reported no block yet")

    # Whoever asks again needs no node.
    deaf = replace(away, heads=SimpleNamespace(read_now=unheard, last_number=lambda: 0))  # type: ignore[arg-type]
    assert await bought(deaf, account, built.tokens["plain"], "0.1", once="a") == first
    assert (await failed(bought(deaf, account, built.tokens["plain"], "0.1", once="b"))).code == "upstream"
