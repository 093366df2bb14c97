"""The rules page of the console: each rule in words, where its hits go, and examples about a real token."""

from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.watch.channels import ACTIVE
from roundtrip.domain.watch.rules import Rule, Who
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing
from roundtrip.store.delivery import channels
from roundtrip.store.index.vitals import newest_launch
from roundtrip.store.watch import watches

from .rule_parser import parse
from .rules import ANY_WALLET, describe_rule


class RuleInWords(msgspec.Struct, frozen=True, rename="camel"):
    """A rule of the account, in words."""

    id: int
    words: str
    paused: bool


class RuleExample(msgspec.Struct, frozen=True, rename="camel"):
    """An example rule that can be set without changes."""

    rule: str
    words: str


class WatchAround(msgspec.Struct, frozen=True, rename="camel"):
    """``told``: the number of active channels; ``off``: of those switched off. ``token``: the
    newest launchpad token; None: none is known."""

    text: str
    rules: list[RuleInWords]
    told: int
    off: int
    token: Annotated[str | None, says("The examples are about it.")]
    examples: list[RuleExample]


async def watch_around(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[WatchAround]:
    """The account's rules in words, its channels and examples. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        rules = await watches.rules_of(connection, account.id)
        owned = await channels.of_account(connection, account.id)
        token = await newest_launch(connection)
    live = sum(channel.state in ACTIVE for channel in owned)
    examples = ["follow buying", "any selling over 10 eth", "any launching over 1 eth"]
    if token is not None:
        examples += [f"any removing over 20 % on {token}", f"deployer:{token} selling over 1 %"]
    answer = WatchAround(
        text=_text(live),
        rules=[RuleInWords(kept.id, describe_rule(kept.rule, kept.wallet), kept.paused) for kept in rules],
        told=live,
        off=len(owned) - live,
        token=token,
        examples=[RuleExample(example, _describe_example(parse(example))) for example in examples],
    )
    return UseCaseAnswer(answer)


def _describe_example(rule: Rule) -> str:
    """The example in words, without looking up the deployer."""
    if rule.who.kind == "deployer":
        by_any_wallet = Rule(Who("any", None), rule.verb, rule.over, rule.token)
        return describe_rule(by_any_wallet, None).replace(ANY_WALLET, "the token's deployer", 1)
    return describe_rule(rule, None)


def _text(live: int) -> str:
    if not live:
        return "Alerts go to your inbox. You have no active channel."
    return f"Alerts go to your inbox and to {format_count(live, 'channel')}."
