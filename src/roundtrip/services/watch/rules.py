"""Lists, creates and deletes an account's rules."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault, ServiceFull
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.watch.alerts import MAX_FOLLOWS, MAX_RULES
from roundtrip.domain.watch.rules import DECIMALS, Over, Rule, Verb, Who
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.watch.rule_parser import parse
from roundtrip.services.watch.schema import (
    FollowListed,
    RuleDropped,
    RuleEditParams,
    RuleIdParams,
    RuleListed,
    RuleMade,
    RuleParams,
    RulesListed,
)
from roundtrip.store.index.addresses import id_of
from roundtrip.store.index.cursor import cursor
from roundtrip.store.index.deployers import LaunchSpot, launch_of
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches


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
