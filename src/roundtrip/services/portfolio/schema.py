"""The answer of ``my_bag``."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.venue_code import Level
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed
from roundtrip.services.support.strangers_text import WRITTEN

Sells = Literal["yes", "refused", "unknown"]


class CheckKept(msgspec.Struct, frozen=True, rename="camel"):
    """What a check said, and which taxes it found. Null: it found none out."""

    code: str
    level: Level
    checked_at: datetime
    block: int
    fees_bps: Annotated[
        int | None, msgspec.Meta(description="Taxes and fees of a small round trip, measured.")
    ]
    buy_tax_bps: Annotated[int | None, msgspec.Meta(description="Of launchpad tokens, as a check has it.")]
    sell_tax_bps: int | None


class DeployerChange(msgspec.Struct, frozen=True, rename="camel"):
    """What the token's deployer sold since."""

    address: str
    sold_raw: Annotated[str, msgspec.Meta(description="In base units.")]
    sold_bps: Annotated[
        int,
        msgspec.Meta(
            description="Of what he had then and bought since, as far as his trades tell, in hundredths of a "
            "percent."
        ),
    ]


class Changes(msgspec.Struct, frozen=True, rename="camel"):
    """What is different since the wallet bought. Null: not known."""

    deployer: Annotated[
        DeployerChange | None, msgspec.Meta(description="null: no launchpad's token, nobody knows who.")
    ]
    liquidity_left_bps: Annotated[
        int | None,
        msgspec.Meta(
            description="What was taken out since of the liquidity that its largest pool had then, in "
            "hundredths of a percent; null: it had none, or not every change is known."
        ),
    ]
    then: Annotated[
        CheckKept | None, msgspec.Meta(description="The newest check at the first buy or before; null: none.")
    ]
    now: Annotated[CheckKept | None, msgspec.Meta(description="The newest check; null: none is kept.")]


class BagRow(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet holds."""

    token: TokenNamed
    amount: Annotated[
        str | None, msgspec.Meta(description="By the token itself, whole tokens; null: could not be read.")
    ]
    amount_raw: Annotated[str | None, msgspec.Meta(description="The same in base units.")]
    bought_raw: Annotated[
        str,
        msgspec.Meta(description="What is left of what it bought, by its trades; 0: it was only given it."),
    ]
    sells: Annotated[
        Sells,
        msgspec.Meta(
            description="yes: a simulated sell of all of it by this wallet went through; refused: none did; "
            "unknown: could not be found out, which is no yes."
        ),
    ]
    reverts: Annotated[str | None, msgspec.Meta(description=f"Why it was refused; null: not told. {WRITTEN}")]
    worth_eth: Annotated[
        str | None,
        msgspec.Meta(description="What that sell brings now, in eth, a plain decimal; null: not known."),
    ]
    venue: Annotated[VenueKind | None, msgspec.Meta(description="Where it brings that.")]
    cost_eth: Annotated[
        str | None,
        msgspec.Meta(
            description="What the tokens cost that it bought and still holds, in eth; null: not known, or it "
            "was given them."
        ),
    ]
    gain_eth: Annotated[
        str | None,
        msgspec.Meta(
            description="The share of worthEth that is of what it bought, less costEth; below zero: a loss."
        ),
    ]
    gain_bps: Annotated[
        int | None, msgspec.Meta(description="The same in hundredths of a percent of the cost.")
    ]
    realised_eth: Annotated[
        str | None,
        msgspec.Meta(description="What its sales of it brought over what was sold had cost; null: unknown."),
    ]
    since: Annotated[
        datetime, msgspec.Meta(description="The first buy of what it holds, or the first transfer to it.")
    ]
    changes: Changes


class MyBag(IndexAnswer, frozen=True, rename="camel"):
    """What the key's wallet holds of tokens that the index knows."""

    wallet: str
    at_block: Annotated[
        int | None, msgspec.Meta(description="Balances and worths are of this block; null: not read.")
    ]
    worth_eth: Annotated[
        str | None, msgspec.Meta(description="Of those of which it is known, together; null: of none.")
    ]
    gain_eth: Annotated[
        str | None, msgspec.Meta(description="Of those of which it is known, together; null: of none.")
    ]
    unvalued: Annotated[int, msgspec.Meta(description="Tokens of which the worth could not be found out.")]
    gone: Annotated[
        int, msgspec.Meta(description="Tokens that it bought and, by the token itself, holds nothing of now.")
    ]
    at_least: Annotated[bool, msgspec.Meta(description="true: it may hold more; the newest 50 are listed.")]
    holdings: list[BagRow]
