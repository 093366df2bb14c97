"""What a wallet made of a token: its trades folded one by one, in whole numbers.

Average cost, in rounds: a round begins with a buy and ends when the wallet has sold out. Whatever is doubtful
counts against the wallet, since a profit that was never made would put it on a board of winners:

- Tokens that it never bought cost it nothing, so what they bring is no profit. Of a sell of more than it
  bought and still holds only that part of the proceeds counts.
- Where one fill of a round has no known value, the round ends without a ``Closing``.
- A round that ends in the block in which it began ends without one, too: there whoever owns a pool can sell
  himself his own tokens at any price, with money that was lent for one transaction.
- Divisions round down: what a sale brings, and the cost that is left. Both make the profit smaller.
- What was paid for no tokens at all is a loss of the round that is open, or else of the next one.
- What was got for no tokens at all does not count.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from roundtrip.domain.base.events import Spot

DUST = 1000
"""A round ends when no more than this part of the most it ever held is left. Of what it bought in all would
be wrong: who buys and sells all day and always keeps a stake has not sold out."""


class ValuedFill(NamedTuple):
    """A wallet's trade of one token: no amount is below zero. ``eth_wei``, ``micro_usd``: its value; None
    where that is not known."""

    spot: Spot
    buys: bool
    token_raw: int
    eth_wei: int | None
    micro_usd: int | None


class ProfitRound(NamedTuple):
    """A round that ended, every fill of it valued: all that was paid in it, and what the sales brought."""

    spot: Spot
    spent_wei: int
    got_wei: int

    @property
    def profit_wei(self) -> int:
        """Below zero: a loss."""
        return self.got_wei - self.spent_wei


class WalletPosition(NamedTuple):
    """One wallet and one token, fields as the columns of facts.position. A tuple: every trade makes one.

    ``bought_raw``, ``sold_raw``: of all its trades. ``held_raw``: what it bought in this round and has not
    sold; ``cost_wei``: what that cost. ``spent_wei``, ``got_wei``: of all rounds, fills without a value left
    out. ``profit_wei``: the sum over all closings, so that it and the table of closings never disagree.
    ``spent_micro_usd``: what all buys cost, None for ever once it is not known of one of them: over
    ``bought_raw`` it is the average entry, and an average of some buys would be made up. ``unpriced``: fills
    without a value in eth. ``closed``: closings. ``round_...``: of the open round; ``round_most_raw``:
    the most it held; ``round_number``: the block of its first buy, 0 where none is open. ``first_s``,
    ``last_s``: of its first and its newest trade.
    """

    bought_raw: int
    sold_raw: int
    held_raw: int
    cost_wei: int
    spent_wei: int
    got_wei: int
    profit_wei: int
    spent_micro_usd: int | None
    buys: int
    sells: int
    unpriced: int
    closed: int
    round_spent_wei: int
    round_got_wei: int
    round_most_raw: int
    round_unpriced: int
    round_number: int
    first_s: int
    last_s: int

    @property
    def taken_wei(self) -> int | None:
        """The profit so far of the open round's sales, over what the sold tokens cost; None: not known."""
        if self.round_unpriced:
            return None
        return self.round_got_wei - (self.round_spent_wei - self.cost_wei)


EMPTY = WalletPosition(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
"""Before the first trade."""


def fold_fills(
    position: WalletPosition | None, fills: Iterable[ValuedFill]
) -> tuple[WalletPosition, list[ProfitRound]]:
    """The position after ``fills``, given in any order and all later than it, and what they closed."""
    after = EMPTY if position is None else position
    closings = []
    for fill in sorted(fills, key=attrgetter("spot")):
        after, closing = fold(after, fill)
        if closing is not None:
            closings.append(closing)
    return after, closings


def fold(position: WalletPosition | None, fill: ValuedFill) -> tuple[WalletPosition, ProfitRound | None]:
    """The position after one more trade, later than all before it, and the closing where it ends a round."""
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
        # Where nothing is held nothing has a cost: it is lost, and stands in round_spent.
        cost = cost + eth_wei if held else 0
    if micro_usd is None or spent_usd is None:
        spent_usd = None
    else:
        spent_usd += micro_usd
    if not buys + sells:
        first_s = spot.at_s
    return WalletPosition(
        bought + token_raw, sold, held, cost, spent, got, profit, spent_usd, buys + 1, sells, unpriced,
        closed, round_spent, round_got, held if held > most else most, round_unpriced, number, first_s,
        spot.at_s,
    )  # fmt: skip


def _fold_sell(before: WalletPosition, fill: ValuedFill) -> tuple[WalletPosition, ProfitRound | None]:
    (bought, sold, held, cost, spent, got, profit, spent_usd, buys, sells, unpriced, closed, round_spent,
     round_got, most, round_unpriced, number, first_s, _) = before  # fmt: skip
    spot, _, token_raw, eth_wei, _ = fill
    closing = None
    if not buys + sells:
        first_s = spot.at_s
    if eth_wei is None:
        unpriced += 1
        # What nothing of the round was sold for does not matter to it.
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
    return WalletPosition(
        bought, sold + token_raw, held, cost, spent, got, profit, spent_usd, buys, sells + 1, unpriced,
        closed, round_spent, round_got, most, round_unpriced, number, first_s, spot.at_s,
    ), closing  # fmt: skip
