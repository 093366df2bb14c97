"""Who makes a token look better, or strangers look worse, than they are: what is said of it all the same."""

from collections.abc import Sequence

import pytest

from roundtrip.chain.rpc.client import Meter, RpcNode
from roundtrip.domain.base.types import Address
from roundtrip.services.holder_record import funding
from roundtrip_development.devnet.deploy import calldata
from support import holding_expected as expected
from support.actors import ETH, Act, deeds_data
from support.databases import connected
from support.holding import DEAD, SUPPLY, TOKEN, V4, ZERO, Held, HoldersStage
from support.holding_asked import Holding
from support.made_index import MadeIndex
from support.wallet import UnsignedStep
from truth.told_holders import rank, tagged

MILLION = 10**6 * TOKEN
KEY = "(address,address,uint24,int24,address)"


def traded(stage: HoldersStage, part: int = 8) -> Held:
    """A token of which so many tenths lie in a pool."""
    deployer = stage.wallet("deployer")
    held = stage.books(deployer)
    held.pool(deployer, SUPPLY * part // 10, 20 * ETH)
    return held


# --- what never was ------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [DEAD, ZERO])
async def test_what_was_never_burned_does_not_add_up(holding: Holding, where: str) -> None:
    held = traded(holding.stage)
    buyer = holding.stage.wallet("buyer")
    held.do(held.buy(buyer, ETH))
    held.do(held.says(buyer, "grow(address,uint256)", where, 900 * MILLION))
    found = await holding.asked(held.token)
    assert found["status"] == "partial"
    assert "do not add up" in found["text"]


async def test_what_is_thrown_to_nobody_adds_up(holding: Holding) -> None:
    held = traded(holding.stage)
    held.do(held.move(held.deployer, ZERO, SUPPLY // 10))
    held.do(held.move(held.deployer, DEAD, SUPPLY // 20))
    found = await holding.asked(held.token)
    assert (found["status"], found["holders"]["burnedBps"]) == ("complete", 1500)


async def test_who_sold_what_came_without_a_word_does_not_hold_it_all(holding: Holding) -> None:
    stage = holding.stage
    deployer = stage.wallet("deployer")
    held = stage.books(deployer, "truth/silent_mint.vy")
    held.pool(deployer, SUPPLY // 10, 20 * ETH)
    held.do(held.sell(deployer, SUPPLY * 8 // 10))
    found = await holding.asked(held.token)
    assert (found["status"], found["deployer"]["status"]) == ("partial", "holds_some")
    assert 9999 <= found["deployer"]["receivedBps"] <= 10_000
    assert 7999 <= found["deployer"]["soldBps"] <= 8_000


async def test_no_share_is_of_more_than_all(holding: Holding) -> None:
    held = traded(holding.stage)
    buyer, rich = holding.stage.wallets("buyer", 2)
    held.do(held.buy(buyer, ETH))
    held.do(held.move(buyer, rich, 1))
    held.do(held.says(buyer, "grow(address,uint256)", rich, 10 * SUPPLY))
    found = await holding.asked(held.token)
    assert (found["top"][0]["address"], found["top"][0]["supplyBps"]) == (rich, 10_000)
    assert found["holders"]["top10Bps"] == 10_000


async def test_a_unit_of_rounding_is_no_lie(holding: Holding) -> None:
    held = traded(holding.stage)
    buyer, other = holding.stage.wallets("buyer", 2)
    held.do(held.buy(buyer, ETH))
    held.do(held.says(buyer, "grow(address,uint256)", buyer, 1))
    held.do(held.move(buyer, other, held.balance(buyer)))
    assert (await holding.asked(held.token))["status"] == "complete"


# --- winners -------------------------------------------------------------------------------------------


async def test_what_was_sent_to_winners_is_no_holding_of_theirs(holding: Holding) -> None:
    stage = holding.stage
    winners, alt = stage.wallets("winner", 3), stage.wallet("alt")
    dusted, real, gifted = winners
    held = stage.launched(stage.wallet("deployer"))
    stage.pass_blocks(31)
    held.do(held.buy(alt, ETH), held.buy(real, ETH // 10))
    held.one_by_one(held.move(alt, dusted, 1), held.move(alt, gifted, MILLION))
    # Next to nothing, bought for it.
    held.do(held.buy_for(stage.hands(alt), alt, [dusted], ETH // 10**9))
    other = stage.launched(alt, salt=8)
    await holding.follow()
    async with connected(holding.url) as connection:
        await connection.execute("DELETE FROM facts.winner")
        index = MadeIndex(connection)
        for place, one in enumerate(winners, 1):
            await rank(index, "24h", place, one, 5 * ETH, other.token)
    found = await holding.asked(held.token, follows=False)
    assert [one["address"] for one in found["smartMoney"]["wallets"]] == [real]
    tags = tagged(found)
    assert {one: "winner" in tags[one] for one in winners} == {dusted: False, real: True, gifted: False}


# --- false ties ----------------------------------------------------------------------------------------


async def test_who_was_paid_by_a_contract_before_is_not_tied_by_a_wei(holding: Holding) -> None:
    stage = holding.stage
    deployer, bridge = stage.wallet("deployer"), stage.wallet("bridge")
    hands = stage.hands(bridge)
    victims = [stage.wallet(f"victim {n}", 0) for n in range(3)]
    for victim in victims:
        stage.send(bridge, hands, deeds_data([UnsignedStep(victim, "0x", 10 * ETH)]), 10 * ETH)
    stage.pass_blocks(3)
    # More than dust: only what they had before tells.
    for victim in victims:
        stage.send(deployer, victim, "0x", ETH)
    held = stage.launched(deployer, exempt=tuple(victims))
    held.do(*(held.buy(victim, ETH // 10) for victim in victims))
    found = await holding.asked(held.token)
    assert found["bundle"] is None
    assert not any("funded_by_deployer" in tagged(found)[one] for one in victims)
    assert {one["kind"] for one in found["forensics"]["links"]} == {"deployed", "sniped"}


async def test_a_wei_is_no_funding(holding: Holding) -> None:
    stage = holding.stage
    deployer, victims = stage.wallet("deployer"), [stage.wallet(f"victim {n}", 0) for n in range(3)]
    for victim in victims:
        stage.send(deployer, victim, "0x", 1)
    for victim in victims:
        stage.send(stage.wallet(f"own {victim}"), victim, "0x", ETH)
    held = stage.launched(deployer, exempt=tuple(victims))
    held.do(*(held.buy(victim, ETH // 10) for victim in victims))
    found = await holding.asked(held.token)
    assert found["bundle"] is None
    assert not any("funded_by_deployer" in tagged(found)[one] for one in victims)


async def test_a_deployer_who_dusts_a_crowd_is_still_tied_to_his_own(holding: Holding) -> None:
    stage = holding.stage
    deployer = stage.wallet("deployer")
    own = [stage.funded(f"own {n}", deployer) for n in range(4)]
    stage.crowd(deployer, 501)
    held = stage.launched(deployer, exempt=tuple(own))
    held.do(*(held.buy(one, ETH // 2) for one in own))
    found = await holding.asked(held.token)
    assert found["bundle"]["wallets"] == 4
    assert found["bundle"]["funder"] == deployer
    assert all("funded_by_deployer" in tagged(found)[one] for one in own)


async def test_a_deployer_as_busy_as_an_exchange_ties_nobody(holding: Holding) -> None:
    stage = holding.stage
    deployer = stage.wallet("deployer")
    own = [stage.funded(f"own {n}", deployer) for n in range(3)]
    held = stage.launched(deployer, exempt=tuple(own))
    held.do(*(held.buy(one, ETH // 2) for one in own))
    stage.rpc.call("anvil_setNonce", deployer, hex(10_000))
    stage.pass_blocks(1)
    found = await holding.asked(held.token)
    assert found["bundle"] is None
    assert not any("funded_by_deployer" in tagged(found)[one] for one in own)


async def test_another_who_dusts_a_crowd_is_told_of(holding: Holding) -> None:
    stage = holding.stage
    funder = stage.wallet("funder")
    own = [stage.funded(f"own {n}", funder) for n in range(4)]
    stage.crowd(funder, 501)
    held = stage.launched(stage.wallet("deployer"), exempt=tuple(own))
    held.do(*(held.buy(one, ETH // 2) for one in own))
    found = await holding.asked(held.token)
    assert found["bundle"] is None
    assert f"4 launch buyers share the funder {funder}, which paid over 500 wallets" in found["text"]


async def test_a_stranger_who_is_named_as_creator_is_not_suspicious(holding: Holding) -> None:
    stage = holding.stage
    victim, other = stage.wallet("victim"), stage.wallet("other")
    held = stage.launched(stage.wallet("deployer"), creator=victim, creator_tax_bps=100)
    stage.pass_blocks(31)
    held.do(held.buy(victim, 3 * ETH), held.buy(other, ETH))
    found = await holding.asked(held.token)
    assert "creator" in tagged(found)[victim]
    assert (found["forensics"]["suspiciousWallets"], found["forensics"]["suspiciousBps"]) == (0, 0)


async def test_who_was_paid_by_a_contract_long_ago_is_not_fresh(holding: Holding) -> None:
    stage = holding.stage
    bridge = stage.wallet("bridge")
    hands, old = stage.hands(bridge), stage.wallet("old one", 0)
    stage.send(bridge, hands, deeds_data([UnsignedStep(old, "0x", 10 * ETH)]), 10 * ETH)
    stage.pass_s(30 * 86_400)
    held = stage.launched(stage.wallet("deployer"))
    stage.pass_blocks(31)
    held.do(held.buy(old, ETH))
    found = await holding.asked(held.token)
    (first,) = found["top"]
    assert (first["address"], "fresh" in first["tags"]) == (old, False)
    assert first["ageDays"] in (30, None)


@pytest.mark.parametrize("kept", ["all states", "none"])
async def test_whom_the_index_never_met_is_not_fresh_for_that(
    holding: Holding, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    """A contract of long ago, and a wallet with eth from nowhere: others buy for them. And a wallet to which
    nothing but the token ever came."""
    stage = holding.stage
    sender, rich, poor = stage.wallet("sender"), stage.wallet("rich"), stage.wallet("poor", 0)
    hands, contract = stage.hands(sender), stage.hands(stage.wallet("somebody"))
    stage.pass_s(30 * 86_400)
    held = traded(stage)
    stage.pass_blocks(31)
    held.do(held.buy_for(hands, sender, [rich, poor, contract], ETH))
    stage.pass_s(60)
    stage.pass_blocks(2)
    if kept == "none":

        async def had_before(
            node: RpcNode, wanted: Sequence[tuple[Address, int]], rich: Address, meter: Meter
        ) -> dict[Address, None]:
            return dict.fromkeys(wallet for wallet, _ in wanted)

        monkeypatch.setattr(funding, "had_before", had_before)
    found = await holding.asked(held.token)
    ages = {one["address"]: (one["ageDays"], "fresh" in one["tags"]) for one in found["top"]}
    assert ages[rich] == (None, False)
    assert ages[contract] in ((30, False), (None, False))
    assert ages[poor] == ((0, True) if kept == "all states" else (None, False))


# --- where it lies -------------------------------------------------------------------------------------


async def test_liquidity_that_was_taken_out_is_told_of(holding: Holding) -> None:
    stage = holding.stage
    held = traded(stage, 10)
    deployer, buyer = held.deployer, stage.wallet("buyer")
    stage.pass_blocks(31)
    held.do(held.buy(buyer, 20 * ETH))
    manager = stage.contracts["v3PositionManager"]
    nft = stage.view(manager, "tokenOfOwnerByIndex(address,uint256)", deployer, 0)
    rows = stage.rpc.call("eth_call", {"to": manager, "data": calldata("positions(uint256)", nft)}, "latest")
    less = "decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))"
    taken = nft, int(rows[2 + 64 * 7 : 2 + 64 * 8], 16), 0, 0, 2**40
    stage.send(deployer, manager, calldata(less, taken))
    collect = "collect((uint256,address,uint128,uint128))"
    stage.send(deployer, manager, calldata(collect, (nft, deployer, 2**127, 2**127)))
    found = await holding.asked(held.token)
    assert "the liquidity was taken out" in found["text"]
    assert "0.00 % moved to others" in found["text"]
    assert f"{found['deployer']['pooledBps'] / 100:.2f} % put into pools" in found["text"]


async def test_what_is_parked_beside_is_told_of(holding: Holding) -> None:
    held = traded(holding.stage, 3)
    held.do(held.move(held.deployer, held.token, SUPPLY * 6 // 10))
    found = await holding.asked(held.token)
    assert "60.00 % is held by the token contract itself, routers, lockers or" in found["text"]
    assert "No wallet bought in its launch window." in found["text"]


async def test_where_most_is_burned_the_rest_is_told_of_for_itself(holding: Holding) -> None:
    held = traded(holding.stage, 2)
    held.do(held.move(held.deployer, DEAD, SUPPLY * 7 // 10))
    found = await holding.asked(held.token)
    assert "the biggest has 10.00 % of the supply" in found["text"]
    assert "The biggest have 100.00 % of what is neither burned nor in pools." in found["text"]


async def test_what_was_bought_as_a_claim_is_nobodys_and_said_to_be(holding: Holding) -> None:
    stage = holding.stage
    deployer, sniper, buyer = stage.wallet("deployer"), stage.wallet("sniper"), stage.wallet("buyer")
    held = stage.books(deployer)
    held.venue = V4
    held.pool(deployer, SUPPLY, 5 * ETH)
    manager = stage.contracts["v4PoolManager"]
    claims = stage.create(sniper, "truth/claims.vy", ["address"], [manager])
    key = ZERO, held.token, 3000, 60, ZERO
    stage.send(sniper, claims, calldata(f"act({KEY},uint256,uint256)", key, 0, ETH), ETH)
    held.do(held.buy(buyer, ETH))
    found = await holding.asked(held.token)
    assert found["status"] == "partial"
    assert "as claims or liquidity. No transfer shows the owners of that" in found["text"]


async def test_own_tokens_that_become_claims_are_put_there_and_neither_sold_nor_burned(
    holding: Holding,
) -> None:
    stage = holding.stage
    deployer, buyer = stage.wallet("deployer"), stage.wallet("buyer")
    held = stage.books(deployer)
    held.venue = V4
    held.pool(deployer, SUPPLY // 10, 5 * ETH)
    manager = stage.contracts["v4PoolManager"]
    claims = stage.create(deployer, "truth/claims.vy", ["address"], [manager])
    rest = held.balance(deployer)
    held.do(held.says(deployer, "approve(address,uint256)", claims, rest))
    key = ZERO, held.token, 3000, 60, ZERO
    stage.send(deployer, claims, calldata(f"act({KEY},uint256,uint256)", key, 2, rest))
    held.do(held.buy(buyer, ETH))
    found = await holding.asked(held.token)
    answer = found["deployer"]
    assert (answer["status"], answer["pooledBps"], answer["heldBps"]) == ("moved_out", 10_000, 0)
    assert (answer["soldBps"], answer["burnedBps"], found["holders"]["burnedBps"]) == (0, 0, 0)
    assert "100.00 % put into pools. What was put into pools may be taken out again." in found["text"]
    stage.send(deployer, claims, calldata(f"act({KEY},uint256,uint256)", key, 3, rest // 4))
    answer = (await holding.asked(held.token))["deployer"]
    assert (answer["status"], answer["receivedBps"], answer["heldBps"]) == ("holds_some", 10_000, 2250)


async def test_what_is_minted_into_pools_is_told_of(holding: Holding) -> None:
    stage = holding.stage
    deployer = stage.wallet("deployer")
    held = stage.books(deployer, "truth/dumps.vy")
    held.pool(deployer, SUPPLY, 5 * ETH)
    held.do(held.buy(stage.wallet("buyer"), ETH))
    (pool,) = held.pools
    stage.send(deployer, held.token, calldata("rebalance(address,uint256)", pool, SUPPLY))
    found = await holding.asked(held.token)
    assert "was minted straight into pools" in found["text"]


# --- places --------------------------------------------------------------------------------------------


async def test_empty_pools_of_a_stranger_take_nothing_from_it(holding: Holding) -> None:
    stage = holding.stage
    held, stranger = traded(stage), stage.wallet("stranger")
    buyer = stage.wallet("buyer")
    held.do(held.buy(buyer, ETH))
    manager = stage.contracts["v4PoolManager"]
    acts = []
    for n in range(260):
        data = calldata(f"initialize({KEY},uint160)", (ZERO, held.token, 7000 + n, 60, ZERO), 2**96)
        acts.append(Act(stranger, UnsignedStep(manager, data), gas=100_000))
    for first in range(0, len(acts), 65):
        stage.block(acts[first : first + 65])
    await holding.says(held, {"status": "complete", "holders": expected.counted(held)})
