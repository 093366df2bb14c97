"""A wallet's profit from a token: its trades folded one by one, in whole numbers.

Average cost, in rounds: a round begins with a buy and ends when the wallet has sold out. Every doubt counts
against the wallet, since a false profit would put it on the board of winners:

- Tokens that it never bought cost it nothing, so their proceeds are no profit. Of a sell of more than it
  bought and still holds, only that part of the proceeds counts.
- A round with a fill of unknown value ends without a ``ProfitRound``.
- A round that ends in the block in which it began ends without one, too: within a block the owner of a pool
  can sell himself his own tokens at any price, with money lent for one transaction.
- Divisions round down: both the proceeds of a sale, and the cost that is left. Both make the profit smaller.
- Payment for no tokens at all is a loss of the open round, or else of the next one.
- Proceeds of no tokens at all do not count.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Numeric

DUST = 1000
"""A round ends when at most this part of the most it ever held is left. The total of its buys would be the
wrong measure: a wallet that buys and sells all day and always keeps a stake has not sold out."""


_new = tuple.__new__
"""Takes half as long as calling the class."""


class ValuedFill(NamedTuple):
    """A wallet's trade of one token; no amount is negative. ``eth_wei``, ``micro_usd``: its value; None:
    unknown."""

    spot: Spot
    buys: bool
    token_raw: int
    eth_wei: int | None
    micro_usd: int | None


class ProfitRound(NamedTuple):
    """A round that ended with every fill valued: all that was paid in it, and the proceeds."""

    spot: Spot
    spent_wei: int
    got_wei: int

    @property
    def profit_wei(self) -> int:
        """Negative: a loss."""
        return self.got_wei - self.spent_wei


class WalletPosition(NamedTuple):
    """One wallet and one token, fields as the columns of facts.position. A tuple: every trade makes one.

    ``bought_raw``, ``sold_raw``: of all its trades. ``held_raw``: bought in this round and not sold yet;
    ``cost_wei``: its cost. ``spent_wei``, ``got_wei``: of all rounds, without fills of unknown value.
    ``profit_wei``: the sum over all closed rounds, so that it and the table of closings never disagree.
    ``spent_micro_usd``: the cost of all buys, None for ever once one of them is unknown: over ``bought_raw``
    it is the average entry, and an average of some buys would be made up. ``unpriced``: fills without a value
    in eth. ``closed``: closed rounds. ``round_...``: of the open round; ``round_most_raw``: the most it held;
    ``round_number``: the block of its first buy, 0 where no round is open. ``first_s``, ``last_s``: of its
    first and its newest trade.
    """

    bought_raw: Numeric
    sold_raw: Numeric
    held_raw: Numeric
    cost_wei: Numeric
    spent_wei: Numeric
    got_wei: Numeric
    profit_wei: Numeric
    spent_micro_usd: Numeric | None
    buys: int
    sells: int
    unpriced: int
    closed: int
    round_spent_wei: Numeric
    round_got_wei: Numeric
    round_most_raw: Numeric
    round_unpriced: int
    round_number: int
    first_s: int
    last_s: int


EMPTY = WalletPosition(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
"""Before the first trade."""


def fold_fills(
    position: WalletPosition | None, fills: Iterable[ValuedFill]
) -> tuple[WalletPosition, list[ProfitRound]]:
    """The position after ``fills``, given in any order and all later than it, and the rounds they closed."""
    folded = EMPTY if position is None else position
    closings = []
    for fill in sorted(fills, key=attrgetter("spot")):
        folded, closing = fold(folded, fill)
        if closing is not None:
            closings.append(closing)
    return folded, closings


def fold(position: WalletPosition | None, fill: ValuedFill) -> tuple[WalletPosition, ProfitRound | None]:
    """The position after one more trade, later than all before it, and the round, if the trade closes it."""
    before = EMPTY if position is None else position
    if fill.buys:
        return _fold_buy(before, fill), None
    return _fold_sell(before, fill)


def _fold_buy(before: WalletPosition, fill: ValuedFill) -> WalletPosition:
    (bought, sold, held, cost, spent, got, profit, spent_usd, buys, sells, unpriced, closed, round_spent,
     round_got, most, round_unpriced, number, first_s, _) = before  # fmt: skip
    spot, _, token_raw, eth_wei, micro_usd = fill
    if not held and token_raw:
        number = spot.block_number
    held += token_raw
    if eth_wei is None:
        unpriced += 1
        round_unpriced += 1
    else:
        spent += eth_wei
        round_spent += eth_wei
        # With nothing held there is no cost: the payment is lost, and counts in round_spent.
        cost = cost + eth_wei if held else 0
    if micro_usd is None or spent_usd is None:
        spent_usd = None
    else:
        spent_usd += micro_usd
    if not buys + sells:
        first_s = spot.at_s
    return _new(WalletPosition, (
        bought + token_raw, sold, held, cost, spent, got, profit, spent_usd, buys + 1, sells, unpriced,
        closed, round_spent, round_got, held if held > most else most, round_unpriced, number, first_s,
        spot.at_s,
    ))  # fmt: skip


def _fold_sell(before: WalletPosition, fill: ValuedFill) -> tuple[WalletPosition, ProfitRound | None]:
    (bought, sold, held, cost, spent, got, profit, spent_usd, buys, sells, unpriced, closed, round_spent,
     round_got, most, round_unpriced, number, first_s, _) = before  # fmt: skip
    spot, _, token_raw, eth_wei, _ = fill
    closing = None
    if not buys + sells:
        first_s = spot.at_s
    if eth_wei is None:
        unpriced += 1
        # A sell of nothing that belongs to the round does not matter to it.
        round_unpriced += held > 0 and token_raw > 0
    if held and token_raw:
        left = held - token_raw if held > token_raw else 0
        if eth_wei is not None:
            counted = eth_wei if held >= token_raw else eth_wei * held // token_raw
            got += counted
            round_got += counted
        cost = cost * left // held
        held = left
        if left * DUST <= most:
            if not round_unpriced and spot.block_number > number:
                closing = ProfitRound(spot, round_spent, round_got)
                profit += round_got - round_spent
                closed += 1
            held = cost = round_spent = round_got = most = round_unpriced = number = 0
    return _new(WalletPosition, (
        bought, sold + token_raw, held, cost, spent, got, profit, spent_usd, buys, sells + 1, unpriced,
        closed, round_spent, round_got, most, round_unpriced, number, first_s, spot.at_s,
    )), closing  # fmt: skip


def is_short(amount_raw: int, held_raw: int) -> bool:
    """Whether more than a thousandth of what was bought and not sold is no longer in the wallet: it gave that
    away, or a tax or a hook kept it."""
    return amount_raw * 1000 < held_raw * 999


class HeldValue(NamedTuple):
    """What a wallet paid, on average, for what is left of its buys, and the gain. ``gain_wei`` None: not
    known."""

    cost_wei: int
    gain_wei: int | None


def value_held(held_raw: int, cost_wei: int, amount_raw: int, worth_wei: int | None) -> HeldValue:
    """``held_raw``, ``cost_wei``: as in a position, above 0. ``worth_wei``: of ``amount_raw``, which is all
    that the wallet holds. What others sent to it cost nothing and is no gain. Where it ``is_short`` the gain
    is not known: what it gave away is no loss."""
    if is_short(amount_raw, held_raw):
        return HeldValue(cost_wei, None)
    kept_raw = min(held_raw, amount_raw)
    kept_cost_wei = cost_wei * kept_raw // held_raw
    if worth_wei is None:
        return HeldValue(kept_cost_wei, None)
    gain_wei = worth_wei * kept_raw // amount_raw - kept_cost_wei
    # Each of the divisions leaves out up to a wei.
    return HeldValue(kept_cost_wei, 0 if abs(gain_wei) <= 2 else gain_wei)
