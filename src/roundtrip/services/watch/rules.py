"""Standing rules: which there are, a new one, and one less."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault, ServiceFull
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.watch.alerts import MOST_FOLLOWS, MOST_RULES
from roundtrip.domain.watch.rules import DECIMALS, Over, Rule, Verb, Who
from roundtrip.services.accounts.database import accounts
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.watch.rule_parser import parse
from roundtrip.services.watch.schema import (
    FollowListed,
    RuleDropped,
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
    """The one wallet that it is about; None: whoever, or the followed. Raises CallerFault (bad_input) where
    it can never hit, ServiceFull (busy) where that is not known yet."""
    if rule.verb == "moving" and rule.token is not None:
        await _launch(connection, rule.token, "Transfers are followed of launchpad tokens only.")
    who = rule.who
    if who.kind == "wallet":
        return who.address
    if who.address is None:
        return None
    launch = await _launch(connection, who.address, f"It has no {who.kind} that is known.")
    if who.kind == "deployer":
        return launch.deployer
    if launch.sender is None:
        raise CallerFault(
            "bad_input",
            f"Who sent the launch of {who.address} is not known: it is older than what was followed here. "
            f"Its deployer is: deployer:{who.address}.",
        )
    return launch.sender


async def unseen_text(connection: Connection, rule: Rule) -> str:
    """What to say of a token that stands in no fact: its address may be mistyped."""
    if rule.token is None or await id_of(connection, rule.token) is not None:
        return ""
    return f"Nothing was ever seen of {rule.token}: look whether that address is right."


async def _launch(connection: Connection, token: Address, why: str) -> LaunchSpot:
    found = await launch_of(connection, token)
    if found is not None:
        return found
    stands = await cursor(connection)
    if stands is None or not stands.is_whole():
        raise ServiceFull(
            "busy", f"No launch of {token} is known yet: launches of the past are still being read.", 60
        )
    raise CallerFault("bad_input", f"No launchpad launched {token}. {why}")


_WORTH: Mapping[Verb, str] = {
    "buying": "for more than {}",
    "selling": "for more than {}",
    "launching": "with a first buy of more than {}",
    "graduating": "with more than {} raised",
    "moving": "worth more than {}",
    "draining": "worth more than {}",
}


def when_it_tells(rule: Rule, wallet: Address | None) -> str:
    """What a rule tells of, to stand behind "when". ``wallet``: the one that it is about, if it is one."""
    who, token, over = _who(rule.who, wallet), _token(rule), _over(rule)
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
            return f"{who} takes liquidity{over} out of a pool of {token}"


def _who(who: Who, wallet: Address | None) -> str:
    match who.kind:
        case "follow":
            return "a wallet that you follow"
        case "any":
            return "anybody"
        case "wallet":
            return str(who.address)
        case "deployer" | "creator":
            return f"{wallet}, the {who.kind} of {who.address},"


def _token(rule: Rule) -> Address | str:
    return rule.token or ("a token from the launchpad" if rule.verb == "moving" else "a token")


def _over(rule: Rule) -> str:
    over: Over | None = rule.over
    if over is None:
        return ""
    amount = plain_decimal(over.raw, DECIMALS[over.unit])
    if over.unit != "%":
        return f" {_WORTH[rule.verb].format(f'{amount} {over.unit}')}"
    if rule.verb == "draining":
        return f", more than {amount} % of the pool's,"
    return f", more than {amount} % of its supply at once"


_MOST_ID = 2**63 - 1


async def list_rules(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[RulesListed]:
    """What is watched for an account. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        rules = await watches.rules_of(connection, account.id)
        follows = await watches.follows_of(connection, account.id)
    answer = RulesListed(
        text=_list_text(len(rules), sum(one.hits for one in rules), len(follows)),
        rules=[_present_rule(one) for one in rules],
        follows=[FollowListed(one.wallet, one.name or None, one.made_at) for one in follows],
    )
    return UseCaseAnswer(answer)


async def create_rule(ctx: Context, params: RuleParams, account: Account) -> UseCaseAnswer[RuleMade]:
    """Sets a rule; one that stands already is given as it is. Raises CallerFault (bad_input), ServiceFull."""
    rule, now = parse(params.rule), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        wallet = await wallet_of(connection, rule)
        head = ctx.heads.last_number()
        try:
            made_id = await watches.add_rule(connection, account.id, rule, wallet, head, now)
        except watches.TooManyWatches as many:
            raise CallerFault(
                "bad_input", f"You have {many.most} rules, which is all you can: delete one first."
            ) from None
        (made,) = [one for one in await watches.rules_of(connection, account.id) if one.id == made_id]
        said = [await unseen_text(connection, rule)]
        if rule.who.kind == "follow" and not await watches.follows_of(connection, account.id):
            said.append("You follow no wallet yet: follow_wallet is what it needs.")
    said.insert(
        0,
        f"Rule {made.id} stands: of what happens after block {made.from_number} you are told when "
        f"{when_it_tells(rule, made.wallet)}.",
    )
    return UseCaseAnswer(
        RuleMade(**msgspec.structs.asdict(_present_rule(made)), text=" ".join(filter(None, said)))
    )


async def delete_rule(ctx: Context, params: RuleIdParams, account: Account) -> UseCaseAnswer[RuleDropped]:
    """Drops a rule. Raises CallerFault (bad_input) where the account has none of that id, ServiceFull."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        if params.id > _MOST_ID or not await watches.end_rule(connection, account.id, params.id, now):
            raise CallerFault("bad_input", "You have no rule of that id: list_rules tells which you have.")
    return UseCaseAnswer(
        RuleDropped(f"Rule {params.id} is dropped: it tells of nothing any more.", params.id)
    )


def _present_rule(standing: watches.KeptRule) -> RuleListed:
    return RuleListed(
        id=standing.id,
        rule=standing.rule.text(),
        wallet=standing.wallet,
        hits=standing.hits,
        from_block=standing.from_number,
        made_at=standing.made_at,
    )


def _list_text(rules: int, hits: int, follows: int) -> str:
    standing = "1 rule" if rules == 1 else f"{rules} rules"
    hit = "1 hit" if hits == 1 else f"{hits:,} hits"
    wallets = "1 wallet" if follows == 1 else f"{follows} wallets"
    return (
        f"You have {standing} with {hit} so far, and follow {wallets}; {MOST_RULES} rules and "
        f"{MOST_FOLLOWS} follows are possible."
    )
