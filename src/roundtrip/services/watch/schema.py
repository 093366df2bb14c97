"""Parameters and answers of follows and rules."""

import re
from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import MAX_FOLLOWS, MAX_RULES
from roundtrip.services.support.alert_rows import Eth, Pct, RuleVerb, Symbol, Ts, Usd
from roundtrip.services.support.answer_fields import TokenAddress, WalletAddress, says
from roundtrip.services.support.strangers_text import AnswerText, Sentence
from roundtrip.services.support.wallet_params import read_address

from .rule_parser import MAX_CHARACTERS

MAX_NAME = 24
MAX_HITS_SHOWN = 10
_NAME = re.compile("[A-Za-z0-9]*")

RuleText = Annotated[str, says("The rule in its canonical form.")]
RuleWallet = Annotated[
    str | None,
    says(
        "The one wallet that it is about, also where it names a deployer or creator. null: no single wallet."
    ),
]
FromBlock = Annotated[int, says("Alerts are raised for later blocks.")]


class FollowParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which wallet to follow."""

    address: Annotated[
        str,
        # Checked in ``wallet``, so that a bad address gets its own error and not the one for bad parameters.
        msgspec.Meta(
            extra_json_schema={"pattern": "^0x[0-9a-fA-F]{40}$"},
            description="The wallet's address, 0x and 40 hex digits.",
        ),
    ]
    name: Annotated[
        str,
        msgspec.Meta(
            pattern="^[A-Za-z0-9]*$",
            max_length=MAX_NAME,
            description="Your name for it: at most 24 Latin letters and digits. Left out: it keeps the "
            "name it has.",
        ),
    ] = ""

    def wallet(self) -> Address:
        """The address, lower-cased. Raises CallerFault (bad_address)."""
        return read_address(self.address)

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
            max_length=MAX_CHARACTERS,
            description="<who> <verb> [over <n> eth|usd|%] [on <token>]. who: follow, any, a wallet's "
            "address, deployer:<token>, creator:<token>. verb: buying, selling, launching, graduating, "
            "moving, draining, removing.",
        ),
    ]


class RuleEditParams(RuleParams, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which rule, and what it is to be."""

    id: Annotated[int, msgspec.Meta(ge=1, description="The rule's id from list_rules.")]


class RuleIdParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which rule."""

    id: Annotated[int, msgspec.Meta(ge=1, description="The rule's id from list_rules.")]


class FollowedWallet(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that is followed now."""

    text: AnswerText
    address: WalletAddress
    name: Annotated[str | None, says("Your name for it. null: you gave it none.")]
    follows: Annotated[int, says(f"Wallets that you follow now, at most {MAX_FOLLOWS}.")]
    from_block: FromBlock


class Unfollowed(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that you no longer follow."""

    text: AnswerText
    address: WalletAddress
    was_followed: Annotated[bool, says("false: you did not follow it, so nothing changed.")]
    follows: Annotated[int, says("Wallets that you follow now.")]


class RuleListed(msgspec.Struct, frozen=True, rename="camel"):
    """A rule."""

    id: Annotated[int, says("The rule's id, for delete_rule.")]
    rule: RuleText
    wallet: RuleWallet
    hits: Annotated[int, says("Hits since the rule was made.")]
    from_block: FromBlock
    made_at: Annotated[datetime, says("When the rule was made.")]


class FollowListed(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that is followed."""

    address: WalletAddress
    name: Annotated[str | None, says("Your name for it. null: you gave it none.")]
    since: Annotated[datetime, says("Since when you follow it.")]


class RulesListed(msgspec.Struct, frozen=True, rename="camel"):
    """The account's rules and followed wallets."""

    text: AnswerText
    rules: Annotated[list[RuleListed], says(f"At most {MAX_RULES}, the oldest first.")]
    follows: Annotated[list[FollowListed], says(f"At most {MAX_FOLLOWS}, the oldest first.")]


class RuleMade(RuleListed, frozen=True, rename="camel", kw_only=True):
    """A rule that is set."""

    text: AnswerText


class RuleDropped(msgspec.Struct, frozen=True, rename="camel"):
    """A rule that was deleted."""

    text: AnswerText
    id: Annotated[int, says("The rule's id.")]


class HitRow(msgspec.Struct, frozen=True, rename="camel"):
    """An event that the rule would have hit."""

    who: Annotated[str, says("Who the rule is about, as it says.")]
    verb: Annotated[RuleVerb, says("What happened.")]
    wallet: Annotated[str, says("The wallet that did it.")]
    token: TokenAddress
    symbol: Symbol
    eth: Eth
    usd: Usd
    pct: Pct
    tx: Annotated[str, says("The transaction.")]
    block: Annotated[int, says("Its block.")]
    ts: Ts
    text: Sentence


class RuleTested(msgspec.Struct, frozen=True, rename="camel"):
    """What a rule would have hit."""

    text: AnswerText
    rule: RuleText
    wallet: RuleWallet
    hits: Annotated[int, says("Hits that the rule would have had.")]
    at_least: Annotated[bool, says("true: there are more hits than that.")]
    last: Annotated[list[HitRow], says("The last ten hits, the newest first.")]
    from_time: Annotated[datetime, says("Start of the replay.")]
    to_time: Annotated[datetime, says("End of the replay: the time of block.")]
    block: Annotated[int, says("Last block of the replay.")]
