"""Parameters and answers of follows and rules."""

import re
from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.watch.alerts import MOST_FOLLOWS, MOST_RULES
from roundtrip.services.support.strangers_text import AnswerText, Sentence

from .alert_rows import Eth, Pct, Symbol, Ts, Usd
from .rule_parser import MOST_CHARACTERS

MOST_NAME = 24
MOST_HITS_SHOWN = 10
_NAME = re.compile("[A-Za-z0-9]*")

RuleText = Annotated[
    str, msgspec.Meta(description="The rule in its canonical form: set again, it is the same.")
]
RuleWallet = Annotated[
    str | None,
    msgspec.Meta(
        description="Whom it is about, where that is one wallet: also who the deployer or the creator is."
    ),
]
FromBlock = Annotated[int, msgspec.Meta(description="What happens in later blocks is told.")]


class FollowParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which wallet to follow."""

    address: Annotated[
        str,
        # Checked in ``wallet``, so that a bad address gets its own error and not the one for bad parameters.
        msgspec.Meta(
            extra_json_schema={"pattern": "^0x[0-9a-fA-F]{40}$"}, description="The wallet's address."
        ),
    ]
    name: Annotated[
        str,
        msgspec.Meta(
            pattern="^[A-Za-z0-9]*$",
            max_length=MOST_NAME,
            description="What you call it: Latin letters and digits. Left out: as it was called before.",
        ),
    ] = ""

    def wallet(self) -> Address:
        """The address, lower-cased. Raises CallerFault (bad_address)."""
        try:
            return parse_address(self.address)
        except ValueError:
            raise CallerFault(
                "bad_address",
                "address must be 0x and 40 hex digits, such as 0x00000000000000000000000000000000000000aa.",
            ) from None

    def parsed_name(self) -> str:
        """The name; empty if none was given. Raises CallerFault (bad_input)."""
        if not _NAME.fullmatch(self.name):
            raise CallerFault("bad_input", "name must be Latin letters and digits, such as Whale1.")
        return self.name


class RuleParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to watch for."""

    rule: Annotated[
        str,
        msgspec.Meta(
            max_length=MOST_CHARACTERS,
            description="<who> <verb> [over <n> eth|usd|%] [on <token>]. who: follow, any, a wallet's "
            "address, deployer:<token>, creator:<token>. verb: buying, selling, launching, graduating, "
            "moving, draining.",
        ),
    ]


class RuleIdParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which rule."""

    id: Annotated[int, msgspec.Meta(ge=1, description="Of the rule, as list_rules tells it.")]


class FollowedWallet(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that is followed now."""

    text: AnswerText
    address: str
    name: Annotated[str | None, msgspec.Meta(description="As you call it; null: you gave it no name.")]
    follows: Annotated[
        int, msgspec.Meta(description=f"How many wallets you follow now, {MOST_FOLLOWS} at most.")
    ]
    from_block: FromBlock


class Unfollowed(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that is not followed any more."""

    text: AnswerText
    address: str
    was_followed: bool
    follows: Annotated[int, msgspec.Meta(description="How many wallets you follow now.")]


class RuleListed(msgspec.Struct, frozen=True, rename="camel"):
    """A standing rule."""

    id: int
    rule: RuleText
    wallet: RuleWallet
    hits: Annotated[int, msgspec.Meta(description="How often it was hit since it was made.")]
    from_block: FromBlock
    made_at: datetime


class FollowListed(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that is followed."""

    address: str
    name: Annotated[str | None, msgspec.Meta(description="As you call it; null: you gave it no name.")]
    since: datetime


class RulesListed(msgspec.Struct, frozen=True, rename="camel"):
    """What is watched for an account."""

    text: AnswerText
    rules: Annotated[list[RuleListed], msgspec.Meta(description=f"At most {MOST_RULES}, the oldest first.")]
    follows: Annotated[
        list[FollowListed], msgspec.Meta(description=f"At most {MOST_FOLLOWS}, the oldest first.")
    ]


class RuleMade(RuleListed, frozen=True, rename="camel", kw_only=True):
    """A rule that stands now."""

    text: AnswerText


class RuleDropped(msgspec.Struct, frozen=True, rename="camel"):
    """A rule that stands no more."""

    text: AnswerText
    id: int


class HitRow(msgspec.Struct, frozen=True, rename="camel"):
    """What the rule would have told of."""

    who: Annotated[str, msgspec.Meta(description="Whom the rule is about, as it says.")]
    verb: str
    wallet: str
    token: str
    symbol: Symbol
    eth: Eth
    usd: Usd
    pct: Pct
    tx: str
    block: int
    ts: Ts
    text: Sentence


class RuleTested(msgspec.Struct, frozen=True, rename="camel"):
    """What a rule would have told."""

    text: AnswerText
    rule: RuleText
    wallet: RuleWallet
    hits: int
    at_least: Annotated[bool, msgspec.Meta(description="true: there are more hits, which were not counted.")]
    last: Annotated[
        list[HitRow], msgspec.Meta(description=f"The last hits, the newest first, {MOST_HITS_SHOWN} at most.")
    ]
    from_time: Annotated[datetime, msgspec.Meta(description="From when on it was replayed.")]
    to_time: Annotated[datetime, msgspec.Meta(description="The time of the block up to which it was.")]
    block: Annotated[int, msgspec.Meta(description="That block.")]
