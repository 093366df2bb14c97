"""Who bought a launch first, who paid them, and what they did elsewhere: snipers, bundles, tags, graduated
tokens, returning crowds and winners, against what wallets really did."""

from collections.abc import Sequence

import pytest

from roundtrip.chain.rpc.client import Meter, RpcNode
from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.findings import MAX_FUNDED
from roundtrip.services.holder_record import funding as kin
from support import holding_expected as expected
from support.actors import ETH, Act, What, deeds_data
from support.holding import TOKEN, Held, HoldersStage
from support.holding_asked import Holding
from support.holding_expected import whole
from support.wallet import UnsignedStep
from truth.told_holders import tagged

DAY_S = 86_400
MILLION = 10**6 * TOKEN


# --- snipers ----------------------------------------------------------------------------------------


async def test_who_bought_in_the_window_is_a_sniper_and_a_block_later_nobody_is(holding: Holding) -> None:
    stage = holding.stage
    deployer, (at_once, second, last, late) = stage.wallet("deployer"), stage.wallets("sniper", 4)
    held, launch = stage.launch_act(deployer, 1, exempt=(at_once, second))
    held.do(launch, held.buy(at_once, ETH // 10), held.buy(second, ETH // 10))
    launched = stage.number()
    held.do(held.buy(deployer, ETH // 10))
    held.do(held.sell(second, held.balance(second)))
    stage.pass_blocks(launched + 29 - stage.number())
    held.do(held.buy(last, ETH // 10))
    held.do(held.buy(late, ETH // 10))
    assert stage.number() == launched + 31
    assert list(expected.launch_buys(held, launched)) == [at_once, second, deployer, last]
    text = {
        "launch": {"block": launched, "windowBlocks": 30},
        "snipers": expected.snipers(held, launched, sold_out=1),
        "bundle": None,
        "deployer": expected.deployer(held, "launchpad", "holds_all"),
    }
    found = await holding.says(held, whole(held) | text)
    assert found["snipers"]["wallets"] == 3
    tags = tagged(found)
    assert ("sniper" in tags[at_once], "sniper" in tags[last], "sniper" in tags[late]) == (True, True, False)
    assert "sniper" not in tags[deployer]


async def test_what_a_sniper_bought_later_is_not_sniped_and_what_he_gave_away_not_sold(
    holding: Holding,
) -> None:
    stage = holding.stage
    held = stage.launched(stage.wallet("deployer"))
    launched = stage.number()
    one, two, friend = stage.wallets("sniper", 3)
    held.one_by_one(held.buy(one, ETH // 2), held.buy(two, ETH // 2))
    stage.pass_blocks(31)
    held.do(held.buy(one, ETH))
    held.do(held.move(two, friend, held.balance(two)))
    found = await holding.says(held, whole(held) | {"snipers": expected.snipers(held, launched, sold_out=0)})
    assert found["snipers"]["boughtBps"] < found["snipers"]["heldBps"]


# --- trading before the first large buy ---------------------------------------------------------------


def traded_before(stage: HoldersStage, *first_buyers: str) -> tuple[Held, int]:
    """A token in a v3 pool of which each of them bought a little, one window after another; and the block of
    the first of these buys."""
    deployer = stage.wallet("deployer")
    held = stage.books(deployer)
    held.pool(deployer, 500 * MILLION, 10 * ETH)
    first = stage.number() + 32
    for buyer in first_buyers:
        stage.pass_blocks(31)
        held.do(held.buy(buyer, ETH // 10**5))
    stage.pass_blocks(31)
    return held, first


async def test_a_large_buyer_of_a_token_that_traded_quietly_is_no_sniper(holding: Holding) -> None:
    stage = holding.stage
    early, late = stage.wallets("buyer", 2)
    held, launched = traded_before(stage, early)
    held.one_by_one(*(held.buy(late, ETH // 20) for _ in range(6)))
    first_large = stage.number() - 5
    assert (
        expected.did(held, late, "bought") * 100 > held.supply() > expected.did(held, early, "bought") * 1000
    )
    text = {"launch": {"block": launched}, "snipers": None, "bundle": None}
    found = await holding.says(held, whole(held) | text)
    tags = tagged(found)
    # Nor does the first buyer, who came when the pool had long been open.
    assert ["sniper" in tags[one] for one in (early, late)] == [False, False]
    assert "Nobody raced to buy first, so there are no snipers" in found["text"]
    assert f"The first large buy came later, in block {first_large:,}: 1 wallet bought" in found["text"]
    # Nor does a later crowd make it one.
    crowd = stage.wallets("crowd", 3)
    stage.pass_blocks(31)
    held.do(*(held.buy(one, ETH) for one in crowd))
    await holding.says(held, whole(held) | text)


async def test_a_crowd_that_buys_at_once_is_the_launch_whoever_bought_a_little_before(
    holding: Holding,
) -> None:
    stage = holding.stage
    early, *crowd = stage.wallets("buyer", 4)
    held, _ = traded_before(stage, early)
    held.one_by_one(*(held.buy(one, ETH // 2) for one in crowd))
    launched = stage.number() - 2
    text = {"launch": {"block": launched}, "snipers": expected.snipers(held, launched)}
    found = await holding.says(held, whole(held) | text)
    assert found["snipers"]["wallets"] == 3
    assert "large buy" not in found["text"]


async def test_who_the_deployer_paid_or_gave_tokens_cannot_open_trading_for_a_sniper(
    holding: Holding,
) -> None:
    stage = holding.stage
    deployer, (sniper, *others) = stage.wallet("deployer"), stage.wallets("sniper", 3)
    paid, given = stage.funded("paid", deployer), stage.wallet("given")
    held, _ = traded_before(stage, deployer, paid)
    held.do(held.move(deployer, given, TOKEN))
    held.do(held.buy(given, ETH // 10**5))
    stage.pass_blocks(31)
    held.do(*(held.buy(one, ETH // 2) for one in (sniper, *others)))
    launched = stage.number()
    text = {"launch": {"block": launched}, "snipers": expected.snipers(held, launched)}
    found = await holding.says(held, whole(held) | text)
    tags = tagged(found)
    assert ["sniper" in tags[one] for one in (sniper, paid, given)] == [True, False, False]
    assert "funded_by_deployer" in tags[paid]
    # A stranger's buy proves it, however many of his own came before.
    other, _ = traded_before(stage, paid, stage.wallet("stranger"))
    first = next(deed for deed in other.deeds if deed.wallet == stage.wallet("stranger"))
    other.do(other.buy(sniper, ETH // 2))
    found = await holding.says(other, whole(other) | {"launch": {"block": first.block_number}})
    assert "sniper" not in tagged(found)[sniper]


# --- bundles ----------------------------------------------------------------------------------------


def launched_for(stage: HoldersStage, buyers: list[str]) -> tuple[Held, int]:
    """A launch that each of them buys in its window, each in a transaction of his own."""
    held = stage.launched(stage.wallet("deployer"), exempt=tuple(buyers))
    launched = stage.number()
    held.do(*(held.buy(buyer, ETH // 10) for buyer in buyers))
    return held, launched


async def test_three_buyers_of_one_funder_are_a_bundle(holding: Holding) -> None:
    stage = holding.stage
    funder = stage.wallet("funder")
    kin = [stage.funded(f"kin {n}", funder) for n in range(3)]
    other = stage.funded("other", stage.wallet("other funder"))
    held, launched = launched_for(stage, [*kin, other])
    held.do(held.sell(kin[0], held.balance(kin[0]) // 2))
    text = {
        "snipers": expected.snipers(held, launched),
        "bundle": expected.bundle(held, launched, kin, funder, same_transaction=False),
    }
    found = await holding.says(held, whole(held) | text)
    tags = tagged(found)
    assert [("bundle" in tags[one]) for one in (*kin, other)] == [True, True, True, False]
    links = {
        (one["wallet"], one["to"]) for one in found["forensics"]["links"] if one["kind"] == "same_funder"
    }
    assert links == {(one, funder) for one in kin}


async def test_three_filled_in_one_transaction_are_a_bundle(holding: Holding) -> None:
    stage = holding.stage
    buyers, sender = stage.wallets("filled", 3), stage.wallet("sender")
    held = stage.launched(stage.wallet("deployer"), exempt=tuple(buyers))
    launched = stage.number()
    held.do(held.buy_for(stage.hands(sender), sender, buyers, ETH // 10))
    tx_hash = held.deeds[-1].tx_hash
    text = {
        "snipers": expected.snipers(held, launched),
        "bundle": expected.bundle(held, launched, buyers, None, same_transaction=True),
    }
    found = await holding.says(held, whole(held) | text)
    answer = {one["wallet"]: one for one in found["forensics"]["links"] if one["kind"] == "same_transaction"}
    assert set(answer) == set(buyers)
    assert {one["transaction"] for one in answer.values()} == {tx_hash}


async def test_three_filled_on_a_router_in_one_transaction_are_a_bundle(holding: Holding) -> None:
    stage = holding.stage
    buyers, sender = stage.wallets("filled", 3), stage.wallet("sender")
    hands, deployer = stage.hands(sender), stage.wallet("deployer")
    held = stage.books(deployer)
    held.pool(deployer, 500 * MILLION, 10 * ETH)
    launched = stage.number()
    held.do(held.buy_for(hands, sender, buyers, ETH // 10))
    text = {
        "launch": {"block": launched},
        "snipers": expected.snipers(held, launched),
        "bundle": expected.bundle(held, launched, buyers, None, same_transaction=True),
    }
    await holding.says(held, whole(held) | text)


async def test_two_are_no_bundle(holding: Holding) -> None:
    stage = holding.stage
    funder, sender = stage.wallets("funder", 2)
    kin = [stage.funded(f"kin {n}", funder) for n in range(2)]
    filled = stage.wallets("filled", 2)
    held = stage.launched(stage.wallet("deployer"))
    launched = stage.number()
    held.do(
        *(held.buy(one, ETH // 10) for one in kin), held.buy_for(stage.hands(sender), sender, filled, ETH)
    )
    await holding.says(held, whole(held) | {"snipers": expected.snipers(held, launched), "bundle": None})


async def test_two_links_make_one_bundle_where_they_share_a_wallet(holding: Holding) -> None:
    stage = holding.stage
    funder, sender = stage.wallets("funder", 2)
    kin = [stage.funded(f"kin {n}", funder) for n in range(3)]
    filled = stage.wallets("filled", 2)
    held = stage.launched(stage.wallet("deployer"))
    launched = stage.number()
    hands = stage.hands(sender)
    held.do(
        *(held.buy(one, ETH // 10) for one in kin[:2]), held.buy_for(hands, sender, [kin[2], *filled], ETH)
    )
    found = await holding.says(held, whole(held))
    every = [*kin, *filled]
    rows = expected.bundle(held, launched, every, funder, same_transaction=True)
    for name in ("wallets", "boughtBps", "heldBps"):
        assert found["bundle"][name] == rows[name]


async def test_the_bundle_that_bought_most_is_told_of(holding: Holding) -> None:
    stage = holding.stage
    funder, sender = stage.wallets("funder", 2)
    kin = [stage.funded(f"kin {n}", funder) for n in range(4)]
    filled = stage.wallets("filled", 3)
    held = stage.launched(stage.wallet("deployer"), exempt=tuple(kin + filled))
    launched = stage.number()
    hands = stage.hands(sender)
    held.do(*(held.buy(one, ETH // 100) for one in kin), held.buy_for(hands, sender, filled, ETH // 2))
    text = expected.bundle(held, launched, filled, None, same_transaction=True)
    await holding.says(held, whole(held) | {"bundle": text})


async def test_a_funder_of_very_many_groups_nobody(holding: Holding) -> None:
    stage = holding.stage
    exchange = stage.wallet("exchange")
    kin = [stage.funded(f"customer {n}", exchange) for n in range(3)]
    stage.crowd(exchange, MAX_FUNDED + 1 - len(kin))
    held, launched = launched_for(stage, kin)
    await holding.says(held, whole(held) | {"snipers": expected.snipers(held, launched), "bundle": None})


async def test_a_funder_of_as_many_as_may_be_still_groups(holding: Holding) -> None:
    stage = holding.stage
    funder = stage.wallet("funder of many")
    kin = [stage.funded(f"kin {n}", funder) for n in range(3)]
    stage.crowd(funder, MAX_FUNDED - len(kin))
    held, launched = launched_for(stage, kin)
    text = expected.bundle(held, launched, kin, funder, same_transaction=False)
    await holding.says(held, whole(held) | {"bundle": text})


async def test_operations_of_an_entry_point_group_nobody(holding: Holding) -> None:
    stage = holding.stage
    bundler, accounts = stage.wallet("bundler"), stage.wallets("account", 3)
    entry_point = stage.entry_point(bundler)
    held = stage.launched(stage.wallet("deployer"), exempt=tuple(accounts))
    launched = stage.number()
    steps = [held.buy_step(ETH // 10, one) for one in accounts]
    step = UnsignedStep(entry_point, deeds_data(steps, accounts), 3 * ETH // 10)
    does: tuple[tuple[str, What], ...] = tuple((one, "bought") for one in accounts)
    held.do(Act(bundler, step, does, 12_000_000))
    found = await holding.says(
        held, whole(held) | {"snipers": expected.snipers(held, launched), "bundle": None}
    )
    assert found["snipers"]["wallets"] == 3


# --- on the curve, in the pool, and of the first generation -------------------------------------------


async def test_a_graduated_token_and_those_who_traded_it_on_both_venues(holding: Holding) -> None:
    stage = holding.stage
    held = stage.launched(stage.wallet("deployer"), ETH // 2)
    launched = stage.number()
    stage.pass_blocks(31)
    early, big, late = stage.wallets("buyer", 3)
    held.do(held.buy(early, ETH))
    held.do(held.buy(big, 5 * ETH))
    held.graduate(stage.wallet("anybody"))
    held.do(held.buy(late, ETH))
    held.do(held.buy(early, ETH))
    held.do(held.sell(early, held.balance(early) // 2))
    contracts = stage.contracts
    assert held.balance(contracts["launchpadHook"]) > 0
    assert held.balance(contracts["launchpadLocker"]) > 0
    # Tokens that the launchpad keeps for somebody.
    escrow = contracts["launchpadEscrow"]
    held.do(Act(late, held.move(late, escrow, MILLION).step, ((late, "moved"),)))
    text = {
        "launch": {"block": launched},
        "snipers": None,
        "deployer": expected.deployer(held, "launchpad", "holds_all"),
    }
    found = await holding.says(held, whole(held) | text)
    assert {one["address"] for one in found["top"]} == {held.deployer, early, big, late}
    locked = held.balance(contracts["launchpadLocker"]) + held.balance(escrow)
    assert found["forensics"]["lockedBps"] == expected.bps(locked, held.supply())


async def test_a_launch_of_the_first_generation(holding: Holding) -> None:
    stage = holding.stage
    held = stage.launched_first(stage.wallet("deployer"), ETH // 100)
    launched = stage.number()
    stage.pass_blocks(3)
    one, two = stage.wallets("buyer", 2)
    held.one_by_one(held.buy(one, ETH // 10), held.buy(two, ETH // 10))
    held.do(held.sell(held.deployer, held.balance(held.deployer)))
    text = {
        "launch": {"block": launched},
        "snipers": expected.snipers(held, launched),
        "deployer": expected.deployer(held, "launchpad", "sold_out"),
    }
    await holding.says(held, whole(held) | text)


# --- tags -------------------------------------------------------------------------------------------


async def had_nothing_before(
    node: RpcNode, wanted: Sequence[tuple[Address, int]], rich: Address, meter: Meter
) -> dict[Address, bool]:
    """An archive, which the local chain's node is not, of wallets that the index met at once."""
    return dict.fromkeys((wallet for wallet, _ in wanted), False)


async def test_who_is_fresh_and_whom_the_deployer_paid(
    holding: Holding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kin, "had_before", had_nothing_before)
    stage = holding.stage
    deployer = stage.wallet("deployer")
    old = stage.funded("old", stage.wallet("some funder"))
    stage.pass_s(3 * DAY_S + 60)
    young = stage.funded("young", stage.wallet("some other funder"))
    friend = stage.funded("friend", deployer)
    held = stage.launched(deployer, ETH // 2)
    stage.pass_blocks(31)
    held.one_by_one(*(held.buy(one, ETH // 10) for one in (old, young, friend)))
    hands = stage.hands(old)
    held.do(held.move(old, hands, held.balance(old) // 2))
    found = await holding.says(held, whole(held))
    tags = tagged(found)
    assert tags[old] == []
    assert tags[young] == ["fresh"]
    assert tags[friend] == ["fresh", "funded_by_deployer"]
    assert tags[hands] == ["contract"]
    assert "deployer" in tags[deployer]
    fresh = sum("fresh" in one["tags"] for one in found["top"])
    assert found["holders"]["freshInTop"] == fresh
    assert found["holders"]["agedInTop"] == sum(one["firstSeen"] is not None for one in found["top"])
    ages = {one["address"]: one["ageDays"] for one in found["top"]}
    assert (ages[old], ages[young], ages[friend]) == (3, 0, 0)


async def test_whom_a_launch_pays_its_creators_tax_is_its_creator(holding: Holding) -> None:
    stage = holding.stage
    creator, buyer = stage.wallets("creator", 2)
    held = stage.launched(stage.wallet("deployer"), creator=creator, creator_tax_bps=300)
    stage.pass_blocks(31)
    held.one_by_one(held.buy(creator, ETH // 10), held.buy(buyer, ETH // 5))
    found = await holding.says(
        held, whole(held) | {"deployer": expected.deployer(held, "launchpad", "never_held")}
    )
    assert ["creator" in tagged(found)[one] for one in (creator, buyer)] == [True, False]


async def test_who_sent_a_launch_that_a_contract_made_is_its_creator(holding: Holding) -> None:
    stage = holding.stage
    creator, buyer = stage.wallets("creator", 2)
    hands = stage.hands(creator)
    held, launch = stage.launch_act(hands, 1)
    step = UnsignedStep(hands, deeds_data([launch.step]), launch.step.value_wei)
    held.do(Act(creator, step, gas=12_000_000))
    stage.pass_blocks(31)
    held.one_by_one(held.buy(creator, ETH // 10), held.buy(buyer, ETH // 5))
    found = await holding.says(
        held, whole(held) | {"deployer": expected.deployer(held, "launchpad", "never_held", hands)}
    )
    assert "creator" in tagged(found)[creator]
    assert "creator" not in tagged(found)[buyer]
