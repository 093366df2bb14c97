"""What is asked of one transaction, and what is answered."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.types import TxHash
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.transaction.account import Kind, StepKind
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed
from roundtrip.services.support.money import AssetAmount
from roundtrip.services.support.strangers_text import WRITTEN, Sentence

Status = Literal["success", "failed", "pending"]
EthBy = Literal["balance", "events"]


class ExplainParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which transaction."""

    hash: Annotated[str, msgspec.Meta(description="The transaction's hash.", pattern=r"^0x[0-9a-fA-F]{64}\Z")]

    def tx_hash(self) -> TxHash:
        """In lower case."""
        return TxHash(self.hash.lower())


class ExplainedStep(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that happened in it."""

    kind: StepKind
    text: Sentence
    who: Annotated[str | None, msgspec.Meta(description="Who did it; null: not known.")]
    to: Annotated[
        str | None,
        msgspec.Meta(description="Whom it was done to: a recipient, a spender, who has what was bought."),
    ]
    venue: Annotated[VenueKind | None, msgspec.Meta(description="The sort of pool or curve.")]
    at: Annotated[
        str | None, msgspec.Meta(description="The pool's or curve's address, a v4 pool's id, a new contract.")
    ]
    token: TokenNamed | None
    paid: AssetAmount | None
    got: AssetAmount | None


class WalletMoves(msgspec.Struct, frozen=True, rename="camel"):
    """What another wallet or contract got and gave in it."""

    wallet: str
    paid: list[AssetAmount]
    got: list[AssetAmount]


class Explanation(IndexAnswer, frozen=True, rename="camel"):
    """What a transaction did. Token amounts are as their contracts tell; those of trades are the pools'."""

    hash: str
    status: Status
    kind: Annotated[Kind, msgspec.Meta(description="What it was, by the weightiest of its steps.")]
    tx_block: Annotated[int | None, msgspec.Meta(description="The block it is in; null while in none.")]
    tx_time: Annotated[datetime | None, msgspec.Meta(description="When that block was made.")]
    sender: Annotated[str, msgspec.Meta(description="Who sent it.")] = msgspec.field(name="from")
    to: Annotated[str | None, msgspec.Meta(description="Whom it was sent to; null: it made a contract.")]
    whose: Annotated[
        str | None,
        msgspec.Meta(
            description="Whose paid and got are told: the sender, or the account whose operation it carried; "
            "null where it carried operations of several accounts, which are told in others."
        ),
    ]
    paid: Annotated[list[AssetAmount], msgspec.Meta(description="What left that wallet, the fee not in it.")]
    got: Annotated[list[AssetAmount], msgspec.Meta(description="What came to it.")]
    eth_by: Annotated[
        EthBy,
        msgspec.Meta(
            description="How the eth in paid and got is known. balance: measured over the whole block. "
            "events: what went along and what the logs tell; eth that contracts handed out or back is not in "
            "it, unless incomplete is false."
        ),
    ]
    incomplete: Annotated[
        bool,
        msgspec.Meta(
            description="True: paid and got may lack eth, or tell more of it than was kept: contracts may "
            "have handed some out, or back, and it could not be measured."
        ),
    ]
    fee_eth: Annotated[
        float | None, msgspec.Meta(description="What the sender paid for it to be run, in eth.")
    ]
    others: Annotated[
        list[WalletMoves],
        msgspec.Meta(
            description="Whose operations it carried, who has what was bought, and out of whom money or what "
            "was traded went; ten at most. Eth that contracts handed them is not in it."
        ),
    ]
    steps: Annotated[list[ExplainedStep], msgspec.Meta(description="In order; 40 at most.")]
    more_steps: Annotated[int, msgspec.Meta(description="How many steps there are beside those.")]
    reverts: Annotated[
        str | None,
        msgspec.Meta(
            description="Why it failed, in its contracts' words; null where it did not, or nobody knows. "
            f"{WRITTEN}"
        ),
    ]
