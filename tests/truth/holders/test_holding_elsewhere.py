"""What those who hold a token did elsewhere: crowds that return to a deployer, and winners."""

from typing import Any

from support import holding_expected as expected
from support.actors import ETH
from support.databases import connected
from support.holding import SUPPLY
from support.holding_asked import Holding
from support.holding_expected import whole
from support.made_index import MadeIndex
from truth.told_holders import rank, tagged


async def test_a_crowd_that_bought_the_same_deployers_other_launches(holding: Holding) -> None:
    stage = holding.stage
    deployer = stage.wallet("deployer")
    twice, once, gone, new = stage.wallets("buyer", 4)
    first, second = (stage.launched(deployer, salt=salt) for salt in (1, 2))
    stage.pass_blocks(31)
    first.one_by_one(*(first.buy(one, ETH // 10) for one in (twice, once, gone)))
    # Nobody needs to have kept it.
    first.do(first.sell(once, first.balance(once)))
    second.do(second.buy(twice, ETH // 10))
    # A gift is no buy.
    second.do(second.move(twice, new, second.balance(twice) // 2))
    stranger = stage.launched(stage.wallet("another deployer"), salt=3)
    stranger.do(stranger.buy(new, ETH // 10))
    held = stage.launched(deployer, salt=4)
    stage.pass_blocks(31)
    held.one_by_one(*(held.buy(one, ETH // 10) for one in (twice, once, gone, new)))
    held.do(held.sell(gone, held.balance(gone)))
    # Of its launches all are counted, as a check counts them.
    text = {"wallets": 2, "ofTop": 3, "mostLaunches": 2, "deployerLaunches": 3}
    await holding.says(held, whole(held) | {"repeatCrowd": text})


async def close(
    index: MadeIndex, wallet: str, token: str, number: int, spent: int, got: int, is_fair: bool = True
) -> None:
    """A token that the wallet is through with; ``is_fair``: a crowd bought it."""
    if is_fair:
        row = (await index.id_of(token), number)
        await index.connection.execute("INSERT INTO facts.fair_token VALUES ($1, $2)", *row)
    await index.connection.execute(
        "INSERT INTO facts.closing VALUES ($1, 1, $2, $3, $4, $5, $6)",
        number, 1_750_000_000 + number, await index.id_of(wallet), await index.id_of(token), spent, got,
    )  # fmt: skip


async def test_winners_that_hold_it_and_a_winner_that_is_out(holding: Holding) -> None:
    stage = holding.stage
    best, good, out, never, plain = stage.wallets("winner", 5)
    held = stage.launched(stage.wallet("deployer"))
    stage.pass_blocks(31)
    held.one_by_one(*(held.buy(one, ETH // 10) for one in (best, good, out, plain)))
    held.do(held.sell(out, held.balance(out)))
    other, another, made_up = (stage.launched(never, salt=salt) for salt in (8, 9, 10))
    await holding.follow()
    async with connected(holding.url) as connection:
        await connection.execute("DELETE FROM facts.winner")
        index = MadeIndex(connection)
        await rank(index, "7d", 3, best, 5 * ETH, other.token)
        await rank(index, "all", 2, best, 9 * ETH, other.token, won=4)
        await rank(index, "30d", 7, good, 2 * ETH, other.token, won=1)
        await rank(index, "24h", 1, out, 3 * ETH, other.token)
        await rank(index, "24h", 2, never, 2 * ETH, other.token)
        await index.named(another.token, "HELD", 18, SUPPLY)
        await close(index, best, other.token, 101, ETH, 3 * ETH)
        await close(index, best, another.token, 102, 2 * ETH, 8 * ETH)
        await close(index, best, made_up.token, 103, ETH, 99 * ETH, is_fair=False)
    found = await holding.says(held, whole(held), follows=False)
    smart = found["smartMoney"]
    assert (smart["holding"], smart["soldOut"]) == (2, 1)
    rows = {one["address"]: one for one in smart["wallets"]}
    assert set(rows) == {best, good}
    won = {"token": another.token, "symbol": "HELD", "profitEth": 6.0, "spentEth": 2.0, "multiple": 4.0}
    supply = held.supply()
    assert not expected.differences(
        rows[best],
        {
            "rank": 3, "window": "7d", "profitEth": 5.0, "winRate": 0.75, "closed": 4,
            "supplyBps": expected.bps(held.balance(best), supply),
            "entryMarketCapUsd": expected.entry_cap_usd(held, best),
            "biggestWin": won,
        },
    )  # fmt: skip
    answer: dict[str, Any] = {"rank": 7, "window": "30d", "profitEth": 2.0, "winRate": 0.25, "closed": 4}
    answer["biggestWin"] = {"token": other.token, "profitEth": 1.0, "spentEth": 1.0, "multiple": 2.0}
    assert not expected.differences(rows[good], answer)
    tags = tagged(found)
    assert ["winner" in tags[one] for one in (best, good, plain)] == [True, True, False]
