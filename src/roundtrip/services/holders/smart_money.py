"""What smart_money answers: wallets of the winners list that hold a token, and what they won before."""

from typing import Annotated

import msgspec

from roundtrip.services.support.index_reader import eth_text, quote_token
from roundtrip.store.index.tokens import Label

from .findings import HolderFindings, HolderRecord, HolderWin, find
from .present import MOST_LISTED, market_cap_usd, of_holders, smart_wallets
from .schema import OfHolders, SmartWallet
from .text import smart_text, status_text, token_text

_SAID = 3


class SmartMoney(OfHolders, frozen=True, rename="camel"):
    """Wallets in profit on the winners list that bought the token and hold it."""

    market_cap_usd: float | None
    holding: Annotated[int | None, msgspec.Meta(description="null: not known.")]
    sold_out: Annotated[
        int | None, msgspec.Meta(description="How many of them bought it and sold it all again.")
    ]
    wallets: Annotated[list[SmartWallet], msgspec.Meta(description="At most 100, the nearest board first.")]


def present_smart_money(gathered: HolderRecord) -> SmartMoney:
    """The answer."""
    found = find(gathered)
    return SmartMoney(
        **of_holders(gathered, _text(gathered, found)),
        market_cap_usd=market_cap_usd(gathered),
        holding=None if found.smart is None else len(found.smart.holding),
        sold_out=None if found.smart is None else found.smart.sold_out,
        wallets=smart_wallets(gathered, found),
    )


def _text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    said = status_text(gathered)
    if gathered.read is None:
        return [*said, "Which wallets of the winners list hold it is not known before that."]
    smart = found.smart
    if smart is None:
        return [*said, *smart_text(gathered, found)]
    said += [f"This is about {token_text(gathered)}.", *smart_text(gathered, found)]
    said += [_line(one) for one in smart.holding[:_SAID]]
    more = len(smart.holding) - MOST_LISTED
    if more > 0:
        said.append(f"{more:,} more hold it and are not listed.")
    if smart.holding:
        said.append("That winners hold it is no proof that it can be sold, and they may sell at any moment.")
    return said


def _line(one: HolderWin) -> str:
    board = "of all time" if one.window == "all" else f"of the last {one.window}"
    said = f"{one.wallet} is rank {one.rank} {board} with {eth_text(one.profit_wei)}"
    if one.best is None:
        return f"{said}."
    label = Label(one.best.token, one.best.symbol, None, None, None)
    return f"{said}; its best ever was {quote_token(label)} with {eth_text(one.best.profit_wei)}."
