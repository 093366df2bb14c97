"""What linked_wallets answers: who may be the same person, and what speaks for it."""

from typing import Annotated, Literal

import msgspec

from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed
from roundtrip.services.support.strangers_text import Sentence

ReasonKind = Literal["same_funder", "funded_by", "funded", "same_tokens"]
Standing = Literal["links", "exchange", "contract", "machinery"]


class SharedToken(msgspec.Struct, frozen=True, rename="camel"):
    """A token that both bought in one moment."""

    token: TokenNamed
    tx: Annotated[str, msgspec.Meta(description="The asked wallet's buy.")]
    other_tx: Annotated[str, msgspec.Meta(description="The linked wallet's buy.")]
    blocks_apart: Annotated[int, msgspec.Meta(description="Blocks between the two.")]
    buyers: Annotated[
        int,
        msgspec.Meta(
            description="How many other wallets bought it in that moment, the linked one among them: "
            "the fewer, the more it says."
        ),
    ]


class Reason(msgspec.Struct, frozen=True, rename="camel"):
    """One piece of evidence. What does not belong to its kind is null or empty."""

    kind: Annotated[
        ReasonKind,
        msgspec.Meta(
            description="same_funder: both got their first eth from one wallet; funded_by: the linked wallet "
            "first sent eth to the asked one; funded: the other way round; same_tokens: both bought the same "
            "tokens within ten blocks of each other."
        ),
    ]
    text: Sentence
    funder: Annotated[str | None, msgspec.Meta(description="Who sent the eth.")]
    wallets_funded: Annotated[
        int | None, msgspec.Meta(description="How many wallets the funder first sent eth to.")
    ]
    seconds_apart: Annotated[
        int | None, msgspec.Meta(description="same_funder: the time between the two payments, in seconds.")
    ]
    shared: Annotated[int | None, msgspec.Meta(description="same_tokens: how many.")]
    of_tokens: Annotated[
        int | None,
        msgspec.Meta(description="same_tokens: of how many of the asked wallet's newest, at most 100."),
    ]
    other_tokens: Annotated[
        int | None,
        msgspec.Meta(description="same_tokens: how many the linked wallet ever traded, counted up to 2,000."),
    ]
    tokens: Annotated[
        tuple[SharedToken, ...], msgspec.Meta(description="same_tokens: the most telling, at most 5.")
    ]


class LinkedWallet(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that may be the same person's."""

    address: str
    score: Annotated[
        int,
        msgspec.Meta(description="1 to 100: how much speaks for it. A hint, never a proof.", ge=1, le=100),
    ]
    reasons: tuple[Reason, ...]


class FunderStanding(msgspec.Struct, frozen=True, rename="camel"):
    """The asked wallet's funder, and whether it links anybody."""

    address: str
    wallets_funded: Annotated[
        int, msgspec.Meta(description="How many wallets it first sent eth to; counted up to 501.")
    ]
    standing: Annotated[
        Standing,
        msgspec.Meta(
            description="links: it does; exchange: it first sent eth to over 500 wallets; contract: it has "
            "code; machinery: a contract of the chain that everybody uses."
        ),
    ]


class LinkedWallets(IndexAnswer, frozen=True, rename="camel"):
    """Wallets that share the wallet's funder or trade the same tokens within blocks of it."""

    address: str
    funder: Annotated[
        FunderStanding | None, msgspec.Meta(description="Null: nobody is known to have sent it eth first.")
    ]
    tokens_compared: Annotated[
        int, msgspec.Meta(description="Tokens that the wallet bought in the last 30 days, at most 100.")
    ]
    linked: Annotated[tuple[LinkedWallet, ...], msgspec.Meta(description="The best first, at most 20.")]
