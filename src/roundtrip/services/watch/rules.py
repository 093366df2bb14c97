"""Standing rules: which there are, a new one, and one less."""

from datetime import UTC, datetime

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.watch.alerts import MOST_FOLLOWS, MOST_RULES
from roundtrip.services.accounts.database import accounts
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing
from roundtrip.store.watch import watches

from .rule_parser import parse
from .rule_subject import unseen_text, wallet_of
from .rule_text import when_it_tells
from .schema import FollowListed, RuleDropped, RuleIdParams, RuleListed, RuleMade, RuleParams, RulesListed

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
