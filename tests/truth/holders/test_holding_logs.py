"""Who holds a token whose log lies, whose chain was another a moment ago, or with which anything at all was
done: what is said of it is what balances say."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from support import holding_expected as expected
from support.actors import ETH, Act
from support.holding import DEAD, SUPPLY, TOKEN, ZERO, Held, HoldersStage
from support.holding_asked import Holding
from support.holding_expected import whole

DAY_S = 86_400
MILLION = 10**6 * TOKEN


# --- logs that lie ------------------------------------------------------------------------------------


def of(source: str, *extra: int) -> Callable[[HoldersStage], Held]:
    """A token of ours in a v3 pool."""

    def put(stage: HoldersStage) -> Held:
        deployer = stage.wallet("deployer")
        held = stage.books(deployer, source, extra)
        held.pool(deployer, SUPPLY // 2, 20 * ETH)
        return held

    return put


def _nothing(held: Held, buyer: str) -> None:
    """Its balances move by themselves."""


def _a_day(held: Held, buyer: str) -> None:
    held.stage.pass_s(DAY_S)


def _grows(held: Held, buyer: str) -> None:
    held.do(held.says(buyer, "grow(address,uint256)", buyer, 300 * MILLION))


def _somebody_grows_and_sells(held: Held, buyer: str) -> None:
    """He never stood in any log."""
    insider = held.stage.wallet("insider")
    held.do(held.says(insider, "grow(address,uint256)", insider, 300 * MILLION))
    held.do(held.sell(insider, 10 * MILLION))


def _mints_behind_a_burn(held: Held, buyer: str) -> None:
    """What it minted in secret it tells of as thrown away, as a little really was."""
    insider = held.stage.wallet("insider")
    held.do(held.move(buyer, ZERO, TOKEN))
    held.do(held.says(insider, "inflate(address,uint256)", ZERO, 300 * MILLION))
    held.do(held.says(insider, "grow(address,uint256)", insider, 300 * MILLION))


def _mints_in_secret(held: Held, buyer: str) -> None:
    held.do(held.says(buyer, "inflate(address,uint256)", held.stage.wallet("insider"), 300 * MILLION))


def _shrinks(held: Held, buyer: str) -> None:
    held.do(held.says(buyer, "shrink(address,uint256)", buyer, held.balance(buyer) // 2))


def _cries_of_a_sale(held: Held, buyer: str) -> None:
    cry = "cry(address,address,uint256)"
    held.do(held.says(buyer, cry, buyer, held.stage.wallet("a friend"), held.balance(buyer)))


def _cries_of_gifts(held: Held, buyer: str) -> None:
    """Many seem to hold it."""
    for n in range(20):
        gift = held.stage.wallet(f"popular {n}")
        held.do(held.says(buyer, "cry(address,address,uint256)", held.deployer, gift, MILLION))


def _cries_of_a_mint(held: Held, buyer: str) -> None:
    held.do(held.says(buyer, "cry(address,address,uint256)", ZERO, held.stage.wallet("rich"), 900 * MILLION))


BOOKS = "truth/books.vy"
LIES = (
    (of("zoo/rebase_up.vy", 1000, 3600), _a_day),
    (of("zoo/rebase_down.vy", 1000, 3600), _a_day),
    (of("zoo/reflection.vy", 500), _nothing),
    (of("zoo/inflated_balance.vy", 1000), _nothing),
    (of(BOOKS), _grows),
    (of(BOOKS), _somebody_grows_and_sells),
    (of(BOOKS), _mints_behind_a_burn),
    (of(BOOKS), _mints_in_secret),
    (of(BOOKS), _shrinks),
    (of(BOOKS), _cries_of_a_sale),
    (of(BOOKS), _cries_of_gifts),
    (of(BOOKS), _cries_of_a_mint),
)
NAMES = (
    "rebase up", "rebase down", "reflection", "inflated", "grows", "grows and sells", "a mint behind a burn",
    "a secret mint", "shrinks", "cries",
    "many cries", "a mint that was none",
)  # fmt: skip


@pytest.mark.parametrize(("put", "lies"), LIES, ids=NAMES)
async def test_where_the_log_lies_balances_count(
    holding: Holding, put: Callable[[HoldersStage], Held], lies: Callable[[Held, str], None]
) -> None:
    held = put(holding.stage)
    buyer, other = holding.stage.wallets("buyer", 2)
    held.one_by_one(held.buy(buyer, ETH), held.buy(other, ETH))
    held.do(held.move(buyer, other, held.balance(buyer) // 3))
    lies(held, buyer)
    answer = whole(held, is_honest=False)
    # What a wallet sold of what came to it is told by logs, which lie.
    for one in answer["top"]:
        del one["soldBps"]
    answer["holders"]["countIsFloor"] = True
    found = await holding.says(held, answer | {"status": "partial"})
    drift = found["forensics"]["drift"]
    assert drift["walletsAsked"] >= drift["walletsOff"]
    # Of a secret mint for somebody whom no log names the supply alone tells.
    assert (drift["walletsOff"] > 0 and drift["mostOffBps"] > 0) or drift["supplyOffBps"] < 0
    assert "transfers" in found["text"]


async def test_a_tax_that_its_log_tells_of_is_no_lie(holding: Holding) -> None:
    stage = holding.stage
    held = of("tokens/fee_on_buy.vy", 1000)(stage)
    buyer = stage.wallet("buyer")
    held.do(held.buy(buyer, ETH))
    taxed = held.balance(held.deployer) - SUPPLY // 2
    assert taxed > 0
    await holding.says(held, {"status": "complete", "holders": expected.counted(held)})


@pytest.mark.parametrize("topics", [4, 1])
async def test_what_a_deployer_did_is_not_told_of_logs_of_an_odd_shape(holding: Holding, topics: int) -> None:
    """It pooled a quarter and gave some away, and no log that can be read says so."""
    stage = holding.stage
    deployer, friend = stage.wallets("deployer", 2)
    held = stage.books(deployer, "truth/odd_logs.vy", (topics,))
    held.pool(deployer, SUPPLY // 4, 10 * ETH)
    held.do(held.move(deployer, friend, SUPPLY // 25))
    found = await holding.says(held, {"status": "partial", "deployer": None})
    assert found["top"][0] | {"tags": ["deployer"]} == found["top"][0]
    assert f"Its deployer {deployer} holds 71.00 % now. What else it received" in found["text"]
    # The pool takes a little less than a quarter.
    assert found["holders"]["inPoolsBps"] == 2499
    assert "add up to" not in found["text"].replace("do not add up to", "")


async def test_a_mint_of_five_supplies_that_the_supply_does_not_count_is_said(holding: Holding) -> None:
    held = of(BOOKS)(holding.stage)
    rich = holding.stage.wallet("rich")
    held.do(held.move(held.deployer, rich, SUPPLY // 100))
    held.do(held.says(rich, "grow(address,uint256)", rich, 5 * SUPPLY))
    found = await holding.says(held, {"status": "partial"})
    text = "Balances add up to 6.0 times the supply that the token reports."
    assert found["why"][0] == text
    assert text in found["text"]


# --- another history ----------------------------------------------------------------------------------


@pytest.mark.parametrize("longer", [0, 3])
async def test_what_was_read_of_a_history_that_is_gone_is_read_again(holding: Holding, longer: int) -> None:
    stage = holding.stage
    held = stage.launched(stage.wallet("deployer"))
    one, two, three = stage.wallets("buyer", 3)
    held.do(held.buy(one, ETH // 10))
    kept, before = list(held.deeds), stage.rpc.call("evm_snapshot")
    held.one_by_one(held.buy(two, ETH // 5), held.buy(one, ETH // 10))
    held.do(held.sell(one, held.balance(one) // 2))
    await holding.says(held, whole(held))
    assert stage.rpc.call("evm_revert", before)
    held.deeds = kept
    held.do(held.buy(three, ETH // 4))
    held.do(held.move(one, three, held.balance(one) // 7))
    stage.pass_blocks(2 + longer)
    again = await holding.says(held, whole(held))
    await holding.forget()
    fresh = await holding.says(held, whole(held), follows=False)
    assert but_time(again) == but_time(fresh)


def but_time(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key != "checkedAt"}


# --- anything at all ----------------------------------------------------------------------------------


def _some(dice: Random, most: int) -> int:
    return max(1, most * dice.choice((1, 10, 50, 99, 100)) // 100)


def act(held: Held, dice: Random, wallets: list[str]) -> Act | None:
    """Something that somebody can do just now; None: he cannot."""
    who, other = dice.sample(wallets, 2)
    has = held.balance(who)
    what = dice.choice(
        ("buy", "buy", "sell", "sell", "move", "burn", "itself", "nothing", "give", "mint", "less")
    )
    if what == "buy":
        return held.buy(who, dice.randrange(1, 200) * ETH // 1000)
    if what == "nothing":
        return held.says(who, "transfer(address,uint256)", other, 0)
    if not has:
        return None
    if what == "sell":
        return held.sell(who, _some(dice, has))
    if what == "move":
        return held.move(who, other, _some(dice, has))
    if what == "burn":
        return held.move(who, DEAD, _some(dice, has // 3 + 1))
    if what == "itself":
        return held.says(who, "transfer(address,uint256)", who, _some(dice, has))
    if what == "give":
        step = held.move(who, min(held.pools), _some(dice, has // 3 + 1)).step
        return Act(who, step, ((who, "pooled"),))
    if isinstance(held.venue, str):
        return None
    return held.mint(who, MILLION) if what == "mint" else held.burn(who, _some(dice, has // 3 + 1))


def curve(stage: HoldersStage) -> Held:
    return stage.launched(stage.wallet("deployer"), ETH // 10)


@pytest.mark.parametrize("put", [of(BOOKS), curve], ids=["v3", "curve"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_is_done_the_books_are_right(
    holding: Holding, put: Callable[[HoldersStage], Held], seed: int
) -> None:
    dice, stage = Random(seed), holding.stage
    held = put(stage)
    wallets = [held.deployer, *stage.wallets("anyone", 11)]
    for part in range(3):
        done = 0
        while done < 20:
            step = act(held, dice, wallets)
            if step is not None:
                held.do(step)
                done += 1
        has = sum(expected.holdings(held).values())
        assert has + held.in_pools() + held.balance(DEAD) == held.supply()
        found = await holding.says(held, whole(held))
        assert (found["forensics"]["drift"] or {"walletsOff": 0})["walletsOff"] == 0
        if part == 2:
            await holding.forget()
            fresh = await holding.says(held, whole(held), follows=False)
            assert but_time(found) == but_time(fresh)
