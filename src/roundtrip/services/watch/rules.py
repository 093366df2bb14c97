"""Lists, creates and deletes an account's rules. Parameters and answers of follows and rules. Follows and
unfollows wallets: alerts report a followed wallet's buys, sells and launches. The rules page of the
console: each rule in words, where its hits go, and examples about a real token."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault, ServiceFull
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.watch.alerts import MAX_FOLLOWS, MAX_RULES
from roundtrip.domain.watch.channels import ACTIVE
from roundtrip.domain.watch.rules import DECIMALS, Over, Rule, Verb, Who
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.alert_rows import Eth, Pct, RuleVerb, Symbol, Ts, Usd
from roundtrip.services.support.answer_fields import (
    AnswerText,
    Sentence,
    TokenAddress,
    WalletAddress,
    WalletParams,
    read_address,
    says,
)
from roundtrip.services.support.index_reader import Nothing, accounts
from roundtrip.services.watch.rule_parser import MAX_CHARACTERS, parse
from roundtrip.store.delivery import channels
from roundtrip.store.index.cursor import cursor
from roundtrip.store.index.deployers import LaunchSpot, launch_of
from roundtrip.store.index.tokens import id_of
from roundtrip.store.index.vitals import newest_launch
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches

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
    """A rule that was deleted, paused or resumed."""

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


async def wallet_of(connection: Connection, rule: Rule) -> Address | None:
    """The one wallet that a rule is about; None for any wallet or all followed ones. Raises CallerFault
    (bad_input) when the rule can never hit, ServiceFull (busy) when that is not known yet."""
    if rule.verb == "moving" and rule.token is not None:
        await _read_launch(
            connection,
            rule.token,
            f"moving needs a launchpad token. Use another verb, for example: any selling on {rule.token}",
        )
    who = rule.who
    if who.kind == "wallet":
        return who.address
    if who.address is None:
        return None
    launch = await _read_launch(
        connection,
        who.address,
        f"Its {who.kind} is unknown. Name a wallet instead, for example: {_EXAMPLE_WALLET} {rule.verb}",
    )
    if who.kind == "deployer":
        return launch.deployer
    if launch.sender is None:
        raise CallerFault(
            "bad_input",
            f"The creator of {who.address} is unknown: its launch is older than the index. Its deployer is "
            f"known: use deployer:{who.address} {rule.verb}",
        )
    return launch.sender


async def _refuse_second_launch(connection: Connection, rule: Rule) -> None:
    """Raises CallerFault (bad_input) for a launch of a token that the index knows: it can never hit."""
    token = rule.token
    if rule.verb != "launching" or token is None or await id_of(connection, token) is None:
        return
    raise CallerFault(
        "bad_input",
        f"The token {token} exists, so nobody can launch it. For new tokens leave out the token: "
        f"{replace(rule, token=None).text()}. For this one use another verb: any selling on {token}",
    )


async def unseen_text(connection: Connection, rule: Rule) -> str:
    """A note for a token that the index does not know, because its address may be mistyped; else empty."""
    if rule.token is None or await id_of(connection, rule.token) is not None:
        return ""
    return f"We have no record of {rule.token} yet: check that the address is right."


async def _read_launch(connection: Connection, token: Address, why: str) -> LaunchSpot:
    """The token's launch. Raises CallerFault (bad_input) if it has none, ServiceFull if that is not known
    yet."""
    launch = await launch_of(connection, token)
    if launch is not None:
        return launch
    indexed = await cursor(connection)
    if indexed is None or not indexed.is_whole():
        raise ServiceFull(
            "busy",
            f"No launch of {token} is known yet: the index is still reading past launches. Retry in 60 s.",
            60,
        )
    raise CallerFault("bad_input", f"No launchpad launched {token}. {why}")


_WORTH: Mapping[Verb, str] = {
    "buying": "for more than {}",
    "selling": "for more than {}",
    "launching": "with a first buy of more than {}",
    "graduating": "with more than {} raised",
    "moving": "worth more than {}",
    "draining": "worth more than {}",
    "removing": "worth more than {}",
}
ANY_WALLET = "any wallet"
_EXAMPLE_WALLET = "0x00000000000000000000000000000000000000aa"


def describe_rule(rule: Rule, wallet: Address | None) -> str:
    """The rule in words that follow "when". ``wallet``: the one wallet that it is about, if there is one."""
    who, token, over = _who_text(rule.who, wallet), _token_text(rule), _over_text(rule)
    match rule.verb:
        case "buying":
            return f"{who} buys {token}{over}"
        case "selling":
            return f"{who} sells {token}{over}"
        case "launching":
            return f"{who} launches {token}{over}"
        case "graduating":
            by = "" if rule.who.kind == "any" else f" launched by {who}"
            return f"{token}{by} graduates{over}"
        case "moving":
            return f"{who} moves {token}{over}"
        case "draining":
            if rule.over is not None and rule.over.unit == "%":
                return f"{who} removes{over} of the liquidity of a pool of {token}"
            return f"{who} removes liquidity{over} from a pool of {token}"
        case "removing":
            if rule.over is not None and rule.over.unit == "%":
                return f"{who} removes{over} of the active liquidity of a pool of {token}"
            return f"{who} removes active liquidity{over} from a pool of {token}"


def _who_text(who: Who, wallet: Address | None) -> str:
    match who.kind:
        case "follow":
            return "a wallet that you follow"
        case "any":
            return ANY_WALLET
        case "wallet":
            return str(who.address)
        case "deployer" | "creator":
            return f"{wallet}, the {who.kind} of {who.address},"


def _token_text(rule: Rule) -> Address | str:
    return rule.token or ("a token from the launchpad" if rule.verb == "moving" else "a token")


def _over_text(rule: Rule) -> str:
    over: Over | None = rule.over
    if over is None:
        return ""
    # The exact threshold, with thousands separated: the rule compares with it.
    whole, point, fraction = plain_decimal(over.raw, DECIMALS[over.unit]).partition(".")
    amount = f"{int(whole):,}{point}{fraction}"
    if over.unit != "%":
        return f" {_WORTH[rule.verb].format(f'{amount} {over.unit}')}"
    if rule.verb in ("draining", "removing"):
        return f" more than {amount} %"
    return f", more than {amount} % of its supply at once"


_MAX_ID = 2**63 - 1


async def list_rules(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[RulesListed]:
    """The account's rules and follows. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        rules = await watches.rules_of(connection, account.id)
        follows = await watches.follows_of(connection, account.id)
    answer = RulesListed(
        text=_list_text(len(rules), sum(rule.hits for rule in rules), len(follows)),
        rules=[_present_rule(rule) for rule in rules],
        follows=[FollowListed(follow.wallet, follow.name or None, follow.made_at) for follow in follows],
    )
    return UseCaseAnswer(answer)


async def create_rule(ctx: Context, params: RuleParams, account: Account) -> UseCaseAnswer[RuleMade]:
    """Creates a rule, or returns the existing one. Raises CallerFault (bad_input), ServiceFull."""
    rule = parse(params.rule)
    async with accounts(ctx) as connection:
        return UseCaseAnswer(await _set_rule(ctx, connection, rule, account))


async def edit_rule(ctx: Context, params: RuleEditParams, account: Account) -> UseCaseAnswer[RuleMade]:
    """Puts a rule in the place of another one, all or nothing: a new rule, with hits of its own. Raises
    CallerFault (bad_input) also if the account has no rule of that id, ServiceFull."""
    rule, now = parse(params.rule), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        await watches.lock_account(connection, account.id)
        old = [kept for kept in await watches.rules_of(connection, account.id) if kept.id == params.id]
        if not old:
            raise CallerFault("bad_input", "You have no rule with this id any more. Set a new one.")
        if old[0].rule != rule:
            await watches.end_rule(connection, account.id, params.id, now)
        return UseCaseAnswer(await _set_rule(ctx, connection, rule, account))


async def _set_rule(ctx: Context, connection: Connection, rule: Rule, account: Account) -> RuleMade:
    """Sets the rule, in the caller's transaction. Raises CallerFault (bad_input), ServiceFull."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    await _refuse_second_launch(connection, rule)
    wallet = await wallet_of(connection, rule)
    head = ctx.heads.last_number()
    try:
        rule_id = await watches.add_rule(connection, account.id, rule, wallet, head, now)
    except watches.TooManyWatches as error:
        raise CallerFault(
            "bad_input", f"You have {error.most} rules, the maximum: delete_rule one of them first."
        ) from None
    (kept,) = [kept for kept in await watches.rules_of(connection, account.id) if kept.id == rule_id]
    sentences = [
        f"Rule {kept.id} is set. After block {kept.from_number:,} you get an alert when "
        f"{describe_rule(rule, kept.wallet)}.",
        await unseen_text(connection, rule),
    ]
    if rule.who.kind == "follow" and not await watches.follows_of(connection, account.id):
        sentences.append("You follow no wallet yet, so this rule cannot hit: follow_wallet adds one.")
    return RuleMade(**msgspec.structs.asdict(_present_rule(kept)), text=" ".join(filter(None, sentences)))


async def pause_rule(ctx: Context, params: RuleIdParams, account: Account) -> UseCaseAnswer[RuleDropped]:
    """Pauses a rule. Raises CallerFault (bad_input) if the account has no such rule that goes on,
    ServiceFull."""
    async with accounts(ctx) as connection:
        if params.id > _MAX_ID or not await watches.pause_rule(connection, account.id, params.id):
            raise CallerFault("bad_input", "You have no rule with this id that is not paused.")
    return UseCaseAnswer(RuleDropped(f"Rule {params.id} is paused: it raises no alerts.", params.id))


async def resume_rule(ctx: Context, params: RuleIdParams, account: Account) -> UseCaseAnswer[RuleDropped]:
    """Lets a paused rule go on. Raises CallerFault (bad_input) if the account has no such paused rule,
    ServiceFull."""
    head = ctx.heads.last_number()
    async with accounts(ctx) as connection:
        if params.id > _MAX_ID or not await watches.resume_rule(connection, account.id, params.id, head):
            raise CallerFault("bad_input", "You have no paused rule with this id.")
    return UseCaseAnswer(RuleDropped(f"Rule {params.id} goes on, from the blocks after this.", params.id))


async def delete_rule(ctx: Context, params: RuleIdParams, account: Account) -> UseCaseAnswer[RuleDropped]:
    """Deletes a rule. Raises CallerFault (bad_input) if the account has no rule of that id, ServiceFull."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        if params.id > _MAX_ID or not await watches.end_rule(connection, account.id, params.id, now):
            raise CallerFault(
                "bad_input", "You have no rule with this id. list_rules shows your rules and their ids."
            )
    return UseCaseAnswer(RuleDropped(f"Rule {params.id} is deleted: it raises no more alerts.", params.id))


def _present_rule(kept: watches.KeptRule) -> RuleListed:
    return RuleListed(
        id=kept.id,
        rule=kept.rule.text(),
        wallet=kept.wallet,
        hits=kept.hits,
        from_block=kept.from_number,
        made_at=kept.made_at,
    )


def _list_text(rules: int, hits: int, follows: int) -> str:
    return (
        f"You have {format_count(rules, 'rule')} with {format_count(hits, 'hit')} so far and follow "
        f"{format_count(follows, 'wallet')}. {MAX_RULES} rules and {MAX_FOLLOWS} follows are possible."
    )


async def follow_wallet(
    ctx: Context, params: FollowParams, account: Account
) -> UseCaseAnswer[FollowedWallet]:
    """Follows a wallet, or renames a followed one. Raises CallerFault (bad_address, bad_input),
    ServiceFull."""
    wallet, name, now = params.wallet(), params.parsed_name(), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        head = ctx.heads.last_number()
        # Without a new name a followed wallet keeps its name.
        name = name or await _current_name(connection, account, wallet)
        try:
            await watches.add_follow(connection, account.id, wallet, name, head, now)
        except watches.TooManyWatches as error:
            raise CallerFault(
                "bad_input",
                f"You follow {error.most} wallets, the maximum: unfollow_wallet one of them first.",
            ) from None
        by_wallet = {follow.wallet: follow for follow in await watches.follows_of(connection, account.id)}
    follow, follows = by_wallet[wallet], len(by_wallet)
    name_text = f', called "{follow.name}"' if follow.name else ""
    answer = FollowedWallet(
        text=f"You follow {wallet}{name_text}. Its buys, sells, launches and large removals after block "
        f"{follow.from_number:,} go to your inbox and your channels. {_count_text(follows)}",
        address=wallet,
        name=follow.name or None,
        follows=follows,
        from_block=follow.from_number,
    )
    return UseCaseAnswer(answer)


async def unfollow_wallet(ctx: Context, params: WalletParams, account: Account) -> UseCaseAnswer[Unfollowed]:
    """Ends following a wallet. Raises CallerFault (bad_address), ServiceFull."""
    wallet, now = params.wallet(), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        was_followed = await watches.end_follow(connection, account.id, wallet, now)
        follows = len(await watches.follows_of(connection, account.id))
    text = f"You no longer follow {wallet}." if was_followed else f"You did not follow {wallet}."
    return UseCaseAnswer(Unfollowed(f"{text} {_count_text(follows)}", wallet, was_followed, follows))


async def _current_name(connection: Connection, account: Account, wallet: Address) -> str:
    """The account's name for the wallet; empty if it has none."""
    follows = await watches.follows_of(connection, account.id)
    return next((follow.name for follow in follows if follow.wallet == wallet), "")


def _count_text(follows: int) -> str:
    return f"You follow {format_count(follows, 'wallet')} now; {MAX_FOLLOWS} are possible."


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
