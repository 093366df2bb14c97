"""What the page of rules shows beside them: each in words, where its hits go, and a token to write one of."""

from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.watch.channels import ACTIVE
from roundtrip.domain.watch.rules import Rule, Who
from roundtrip.services.accounts.database import accounts
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing
from roundtrip.store.delivery import channels
from roundtrip.store.index.launches import newest_launch
from roundtrip.store.watch import watches

from .rule_parser import parse
from .rules import when_it_tells


class RuleInWords(msgspec.Struct, frozen=True, rename="camel"):
    """A standing rule, and what it tells of."""

    id: int
    words: str


class RuleExample(msgspec.Struct, frozen=True, rename="camel"):
    """A rule that could be set as it stands."""

    rule: str
    words: str


class WatchAround(msgspec.Struct, frozen=True, rename="camel"):
    """``told``: channels that hits are sent to; ``off``: those that are switched off. ``token``: the newest
    that a launchpad launched; None: none is known."""

    text: str
    rules: list[RuleInWords]
    told: int
    off: int
    token: Annotated[str | None, msgspec.Meta(description="The examples are about it.")]
    examples: list[RuleExample]


async def watch_around(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[WatchAround]:
    """Raises ServiceFull."""
    async with accounts(ctx) as connection:
        rules = await watches.rules_of(connection, account.id)
        found = await channels.of_account(connection, account.id)
        token = await newest_launch(connection)
    told = sum(one.state in ACTIVE for one in found)
    examples = ["follow buying", "any selling over 10 eth", "any launching over 1 eth"]
    if token is not None:
        examples += [f"any draining over 20 % on {token}", f"deployer:{token} selling over 1 %"]
    answer = WatchAround(
        text=_text(told),
        rules=[RuleInWords(one.id, when_it_tells(one.rule, one.wallet)) for one in rules],
        told=told,
        off=len(found) - told,
        token=token,
        examples=[RuleExample(one, _words(parse(one))) for one in examples],
    )
    return UseCaseAnswer(answer)


def _words(rule: Rule) -> str:
    """Of an example nobody looks up who the deployer is."""
    if rule.who.kind == "deployer":
        by_anybody = Rule(Who("any", None), rule.verb, rule.over, rule.token)
        return when_it_tells(by_anybody, None).replace("anybody", "the token's deployer", 1)
    return when_it_tells(rule, None)


def _text(told: int) -> str:
    if not told:
        return "Hits go to your inbox. No channel is told of them yet."
    return f"Hits go to your inbox and to {'one channel' if told == 1 else f'{told} channels'}."
