"""Who holds a token, against what wallets really did on the local chain: pools, burns, sales, moves, and
every end of a deployer's tokens."""

from collections.abc import Callable

import pytest

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.holders.first_block import NoArchive
from roundtrip.chain.rpc.client import Meter, RpcNode
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.services.holder_record import sources
from roundtrip.services.holder_record.collect import gather_holders
from roundtrip.services.runtime.book_cache import ReadBounds
from support import holding_expected as expected
from support.actors import ETH, Act
from support.holding import DEAD, SUPPLY, TOKEN, V3, V4, ZERO, Held, HoldersStage
from support.holding_asked import Holding
from support.holding_expected import did, whole

MILLION = 10**6 * TOKEN


def plain(stage: HoldersStage) -> Held:
    """A token whose deployer puts four fifths of it into a v3 pool with 20 eth."""
    deployer = stage.wallet("deployer")
    held = stage.books(deployer)
    held.pool(deployer, SUPPLY * 8 // 10, 20 * ETH)
    return held


# --- one token, everything that may be done with it --------------------------------------------------


async def test_a_token_in_a_v3_pool(holding: Holding) -> None:
    stage = holding.stage
    held = plain(stage)
    # Liquidity alone is no launch: that is when somebody buys.
    stage.pass_blocks(31)
    launched = stage.number() + 1
    one, two, three, four = stage.wallets("buyer", 4)
    held.one_by_one(held.buy(one, ETH), held.buy(two, 2 * ETH), held.buy(three, ETH), held.buy(one, 3 * ETH))
    held.do(held.sell(one, held.balance(one) // 3))
    held.do(held.sell(three, held.balance(three)))
    stranger = stage.wallet("stranger")
    held.do(held.move(two, stranger, held.balance(two) // 4))
    held.do(held.move(held.deployer, four, 7 * MILLION))
    held.do(held.move(held.deployer, DEAD, 5 * MILLION))
    held.do(held.move(two, ZERO, MILLION))
    found = await holding.says(
        held,
        whole(held)
        | {
            "launch": {"block": launched, "windowBlocks": 30},
            "snipers": expected.snipers(held, launched, sold_out=1),
            "bundle": None,
            "deployer": expected.deployer(held, "deployment", "holds_some"),
            "smartMoney": {"holding": 0, "soldOut": 0, "wallets": []},
            "repeatCrowd": {"wallets": 0, "ofTop": 5, "mostLaunches": 0, "deployerLaunches": 0},
        },
    )
    entries = {one["address"]: one["entryMarketCapUsd"] for one in found["top"]}
    text = {one: expected.entry_cap_usd(held, one) for one in entries}
    assert not expected.differences(entries, text)
    for one in found["top"]:
        cap = one["entryMarketCapUsd"]
        assert not expected.differences(one["multiple"], cap and found["marketCapUsd"] / cap)
    assert {one["address"]: one["tags"] for one in found["top"]}[held.deployer] == ["deployer"]
    # The next buyer of a little pays the price, and 0.3 % to the pool.
    late = stage.wallet("late")
    held.do(held.buy(late, ETH // 1000))
    cap = expected.entry_cap_usd(held, late)
    assert cap is not None
    assert not expected.differences(found["marketCapUsd"], cap * 0.997)


async def test_the_ten_biggest_stand_in_order_and_the_eleventh_does_not(holding: Holding) -> None:
    held = plain(holding.stage)
    wallets = holding.stage.wallets("equal", 12)
    # Two are equal at the end of the ten.
    amounts = [n * MILLION for n in (12, 3, 11, 5, 9, 5, 8, 10, 6, 4, 13, 1)]
    held.one_by_one(*(held.move(held.deployer, w, raw) for w, raw in zip(wallets, amounts, strict=True)))
    rest = held.balance(held.deployer) - 5 * MILLION
    held.do(held.move(held.deployer, DEAD, rest))
    found = await holding.says(held, whole(held))
    assert found["holders"]["count"] == 13
    equal = [one["address"] for one in found["top"] if one["balance"] == "5000000"]
    assert len(equal) == 3
    assert equal == sorted(equal)


async def test_a_supply_that_shrinks_was_not_put_anywhere(holding: Holding) -> None:
    held = plain(holding.stage)
    buyer = holding.stage.wallet("buyer")
    held.do(held.buy(buyer, ETH))
    held.do(held.burn(buyer, held.balance(buyer) // 2))
    held.do(held.burn(held.deployer, 100 * MILLION))
    assert held.supply() < SUPPLY - 100 * MILLION
    await holding.says(held, whole(held) | {"deployer": expected.deployer(held, "deployment", "holds_some")})
    assert expected.counted(held)["burnedBps"] == 0


async def test_a_token_in_a_v4_pool(holding: Holding) -> None:
    stage = holding.stage
    deployer, (one, two) = stage.wallet("deployer"), stage.wallets("buyer", 2)
    held = stage.books(deployer)
    held.venue = V4
    held.pool(deployer, SUPPLY // 2, 20 * ETH)
    launched = stage.number()
    held.one_by_one(held.buy(one, ETH), held.buy(two, ETH), held.sell(one, MILLION))
    assert held.balance(stage.contracts["v4PoolManager"]) == held.in_pools() > 0
    await holding.says(
        held, whole(held) | {"launch": {"block": launched}, "snipers": expected.snipers(held, launched)}
    )


async def test_a_token_in_two_pools(holding: Holding) -> None:
    stage = holding.stage
    held = plain(stage)
    held.venue = V4
    held.pool(held.deployer, 50 * MILLION, ETH)
    (one,) = stage.wallets("buyer", 1)
    held.do(held.buy(one, ETH // 10))
    await holding.says(held, whole(held))


async def test_tokens_that_pass_through_hands_are_bought_by_who_has_them_at_last(holding: Holding) -> None:
    stage = holding.stage
    held = plain(stage)
    launched = stage.number()
    buyer, keeper = stage.wallets("buyer", 2)
    hands = stage.hands(buyer)
    held.do(held.buy_and_pass_on(hands, buyer, ETH, 10 * MILLION))
    held.do(held.buy(keeper, ETH))
    found = await holding.says(held, whole(held) | {"snipers": expected.snipers(held, launched)})
    tags = {one["address"]: one["tags"] for one in found["top"]}
    assert {"sniper", "contract"} <= set(tags[hands])
    # Its eth came from nowhere, before anybody met it.
    assert tags[buyer] == ["sniper"]


# --- what became of the deployer's -------------------------------------------------------------------


def _nothing(held: Held) -> None:
    """Nobody did anything."""


def _holds_a_part(held: Held) -> None:
    held.do(held.sell(held.deployer, held.balance(held.deployer) * 98 // 100))


def _holds_nearly_all(held: Held) -> None:
    held.do(held.sell(held.deployer, held.balance(held.deployer) // 100))


def _holds_less_than_all(held: Held) -> None:
    held.do(held.sell(held.deployer, held.balance(held.deployer) // 100 + 1))


def _sells(held: Held) -> None:
    held.do(held.sell(held.deployer, held.balance(held.deployer)))


def _moves(held: Held) -> None:
    held.do(held.move(held.deployer, held.stage.wallet("friend"), held.balance(held.deployer)))


def _pools(held: Held) -> None:
    # As much eth as the curve's own price asks for; a wei of the token may stay.
    held.pool(held.deployer, held.balance(held.deployer), ETH // 10)


def _burns(held: Held) -> None:
    held.do(held.move(held.deployer, DEAD, held.balance(held.deployer)))


def _sells_most_of_it(held: Held) -> None:
    every = held.balance(held.deployer)
    held.do(held.sell(held.deployer, every * 5 // 10))
    held.do(held.move(held.deployer, held.stage.wallet("friend"), every * 4 // 10))
    held.do(held.move(held.deployer, DEAD, held.balance(held.deployer)))


def _moves_and_pools_most_of_it(held: Held) -> None:
    """Neither is the largest alone."""
    every = held.balance(held.deployer)
    held.do(held.sell(held.deployer, every * 4 // 10))
    held.do(held.move(held.deployer, held.stage.wallet("friend"), every * 3 // 10))
    held.pool(held.deployer, held.balance(held.deployer), ETH // 10)


def _gets_it_back(held: Held) -> None:
    """All was moved out, and half of that comes home."""
    friend = held.stage.wallet("friend")
    every = held.balance(held.deployer)
    held.do(held.move(held.deployer, friend, every))
    held.do(held.move(friend, held.deployer, every // 2))


@pytest.mark.parametrize(
    ("does", "status"),
    [
        (_nothing, "holds_all"),
        (_holds_nearly_all, "holds_all"),
        (_holds_less_than_all, "holds_some"),
        (_holds_a_part, "holds_some"),
        (_gets_it_back, "holds_some"),
        (_sells, "sold_out"),
        (_sells_most_of_it, "sold_out"),
        (_moves, "moved_out"),
        (_pools, "moved_out"),
        (_moves_and_pools_most_of_it, "moved_out"),
        (_burns, "burned_out"),
    ],
)
async def test_what_a_launchs_deployer_did(
    holding: Holding, does: Callable[[Held], None], status: str
) -> None:
    stage = holding.stage
    held = stage.launched(stage.wallet("deployer"), ETH // 2)
    launched = stage.number()
    stage.pass_blocks(31)
    held.do(held.buy(stage.wallet("buyer"), ETH))
    does(held)
    deeds = expected.deployer(held, "launchpad", status)
    # What came back from a friend was not moved.
    back = did(held, held.deployer, "got")
    deeds["movedBps"] = expected.bps(did(held, held.deployer, "moved") - back, held.supply())
    deeds["receivedBps"] = expected.bps(did(held, held.deployer, "bought"), held.supply())
    text = {"launch": {"block": launched}, "deployer": deeds}
    # The deployer is no sniper.
    await holding.says(held, whole(held) | text | {"snipers": None, "bundle": None})


async def test_a_deployer_who_never_had_any(holding: Holding) -> None:
    stage = holding.stage
    held = stage.launched(stage.wallet("deployer"))
    held.do(held.buy(stage.wallet("buyer"), ETH))
    await holding.says(held, whole(held) | {"deployer": expected.deployer(held, "launchpad", "never_held")})


async def test_a_dev_buy_for_somebody_else_is_not_the_deployers(holding: Holding) -> None:
    stage = holding.stage
    friend = stage.wallet("friend")
    held = stage.launched(stage.wallet("deployer"), ETH // 2, friend)
    launched = stage.number()
    text = {
        "deployer": expected.deployer(held, "launchpad", "never_held"),
        "snipers": expected.snipers(held, launched),
    }
    found = await holding.says(held, whole(held) | text)
    assert found["snipers"]["wallets"] == 1


async def test_what_is_sent_to_the_token_itself_nobody_has(holding: Holding) -> None:
    held = plain(holding.stage)
    buyer = holding.stage.wallet("buyer")
    held.do(held.buy(buyer, ETH))
    held.do(Act(buyer, held.move(buyer, held.token, MILLION).step, ((buyer, "moved"),)))
    found = await holding.says(held, whole(held))
    assert found["holders"]["count"] == 2


# --- nothing to tell, or not of a token ----------------------------------------------------------------


async def test_a_token_without_any_pool(holding: Holding) -> None:
    deployer, other = holding.stage.wallets("deployer", 2)
    held = holding.stage.books(deployer)
    held.do(held.move(deployer, other, MILLION))
    text = {
        "launch": None,
        "snipers": None,
        "bundle": None,
        "marketCapUsd": None,
        "deployer": expected.deployer(held, "deployment", "holds_all"),
    }
    await holding.says(held, whole(held) | text)


async def test_a_token_that_a_contract_made(holding: Holding) -> None:
    stage = holding.stage
    who = stage.wallet("maker")
    held = stage.made_by(stage.hands(who), who)
    held.pool(who, SUPPLY // 2, 5 * ETH)
    await holding.says(held, whole(held) | {"deployer": expected.deployer(held, "launch_tx", "holds_some")})


def an_older_token(stage: HoldersStage, minter: str, monkeypatch: pytest.MonkeyPatch) -> Held:
    """Of which nobody can find out how old: its code came without a word."""

    async def no_archive(node: RpcNode, token: Address, high: BlockRef) -> None:
        raise NoArchive("the node no longer has that state")

    monkeypatch.setattr(sources, "find_first_block", no_archive)
    held = Held(stage, stage.wallet("a token", 0), minter, V3)
    code = stage.rpc.call("eth_getCode", stage.books(stage.wallet("maker")).token, "latest")
    stage.rpc.call("anvil_setCode", held.token, code)
    stage.pass_blocks(3)
    held.do(held.mint(minter, SUPPLY))
    return held


async def test_who_spoke_first_of_a_token_that_is_older_is_no_deployer_anywhere(
    holding: Holding, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = holding.stage
    minter, buyers = stage.wallet("minter"), stage.wallets("buyer", 3)
    held = an_older_token(stage, minter, monkeypatch)
    held.pool(minter, SUPPLY // 2, 20 * ETH)
    held.one_by_one(held.buy(minter, ETH), *(held.buy(one, ETH) for one in buyers))
    found = await holding.asked(held.token)
    assert (found["deployer"], found["repeatCrowd"], found["snipers"]["wallets"]) == (None, None, 4)
    (own,) = [one["tags"] for one in found["top"] if one["address"] == minter]
    assert ("deployer" in own, "sniper" in own) == (False, True)
    kinds = {one["kind"] for one in found["forensics"]["links"]}
    assert kinds == {"sniped"}
    assert f"Its deployer is not certain: {minter} sent" in found["text"]
    assert "by the deployer hold" not in found["text"]


async def test_nor_while_it_is_being_read(holding: Holding, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = holding.stage
    minter = stage.wallet("minter")
    held = an_older_token(stage, minter, monkeypatch)
    held.pool(minter, SUPPLY // 2, 20 * ETH)
    held.one_by_one(*(held.buy(one, 4 * ETH) for one in (minter, *stage.wallets("buyer", 3))))
    stage.pass_blocks(40)
    held.one_by_one(*(held.buy(one, ETH // 100) for one in stage.wallets("late", 30)))
    await holding.follow()
    await holding.ctx.heads.refresh()
    holding.ctx.books.limits.new_width = lambda: Width(10, 10)
    holding.ctx.books.limits.at_once = ReadBounds(20, 60.0)
    found = await gather_holders(holding.ctx, Address(held.token), Meter())
    assert (found.status, found.launch is None) == ("reading", False)
    assert found.inputs is not None
    assert found.inputs.maker is None
    assert found.inputs.book.beginning.maker is not None


async def test_who_spoke_first_of_a_token_that_is_older_is_not_flattered(
    holding: Holding, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = holding.stage
    maker, minter, buyer = stage.wallet("maker"), stage.wallet("minter"), stage.wallet("buyer")
    held = an_older_token(stage, minter, monkeypatch)
    found = await holding.says(held, {"status": "complete", "deployer": None})
    text = f"Its deployer is not certain: {minter} sent the transaction of its first transfer"
    assert text in found["text"]
    # That he is out is told all the same.
    held.do(held.move(minter, buyer, SUPPLY))
    out = expected.deployer(held, "launch_tx", "moved_out")
    found = await holding.says(held, {"status": "complete", "deployer": out})
    assert "the token may be older than its first transfer" in found["text"]
    # A contract that says something when it is made is as old as that.
    result = stage.made_by(stage.hands(maker), maker)
    result.do(result.move(maker, buyer, MILLION))
    known = expected.deployer(result, "launch_tx", "holds_all")
    found = await holding.says(result, whole(result) | {"deployer": known})
    assert "may be older" not in found["text"]


@pytest.mark.parametrize("what", ["wallet", "contract"])
async def test_what_is_no_token(holding: Holding, what: str) -> None:
    who = holding.stage.wallet("nobody")
    at = who if what == "wallet" else holding.stage.hands(who)
    with pytest.raises(CallerFault) as caught:
        await holding.asked(at)
    assert caught.value.code == "not_a_token"
