"""Operations: an account's inbox, followed wallets and standing rules."""

from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.services.watch.follows import follow_wallet, unfollow_wallet
from roundtrip.services.watch.inbox import Inbox, inbox
from roundtrip.services.watch.rule_backtest import replay_rule
from roundtrip.services.watch.rules import create_rule, delete_rule, list_rules
from roundtrip.services.watch.schema import (
    FollowedWallet,
    FollowParams,
    RuleDropped,
    RuleIdParams,
    RuleMade,
    RuleParams,
    RulesListed,
    RuleTested,
    Unfollowed,
)

from .operation import AnyOperation, Operation

WATCH: tuple[AnyOperation, ...] = (
    Operation(
        name="inbox",
        title="Inbox",
        description=(
            "Every alert raised for the account of the last seven days: hits of its rules, followed "
            "wallets buying, selling or launching, warnings about what its own wallet holds (bag_guard), and "
            "what its channels came to. The newest first, at "
            "most 500; total says how many there are, at least where atLeast is true. eth, usd and pct are "
            "what moved was worth, null where that is not known; verb retracted means that the chain took it "
            "back. Counts against the minute only."
        ),
        params=Nothing,
        answer=Inbox,
        handler=lambda call: inbox(call.ctx, call.params, call.owner()),
        key=True,
        counts="minute",
    ),
    Operation(
        name="follow_wallet",
        title="Follow a wallet",
        description=(
            "Tells the account of every buy, sell and launch of a wallet from now on, in its inbox and "
            "its channels. At most 200 wallets; following one again with another name renames it. "
            "list_rules lists them."
        ),
        params=FollowParams,
        answer=FollowedWallet,
        handler=lambda call: follow_wallet(call.ctx, call.params, call.owner()),
        key=True,
        writes=True,
        repeatable=True,
        errors=("bad_address",),
    ),
    Operation(
        name="unfollow_wallet",
        title="Stop following a wallet",
        description=(
            "Stops telling the account of what a wallet does. Alerts that were raised stay in the inbox. "
            "Of a wallet that is not followed it changes nothing and says so."
        ),
        params=WalletParams,
        answer=Unfollowed,
        handler=lambda call: unfollow_wallet(call.ctx, call.params, call.owner()),
        key=True,
        writes=True,
        destroys=True,
        repeatable=True,
        bad_params="bad_address",
    ),
    Operation(
        name="list_rules",
        title="Standing rules",
        description=(
            "The account's standing rules with how often each was hit since it was made, and the wallets "
            "that it follows. At most 50 rules and 200 wallets, the oldest first."
        ),
        params=Nothing,
        answer=RulesListed,
        handler=lambda call: list_rules(call.ctx, call.params, call.owner()),
        key=True,
    ),
    Operation(
        name="create_rule",
        title="Set a rule",
        description=(
            "Sets a rule, <who> <verb> [over <n> eth|usd|%] [on <token>], of which each hit from now on "
            "goes to the inbox and the channels. who: follow (the wallets followed), any, a wallet, "
            "deployer:<token>, creator:<token>, the last two as they are now; verb: buying, selling, "
            "launching, graduating, moving, draining. % is of the token's supply, for draining of the "
            "pool's liquidity; moving is of launchpad tokens only. At most 50 rules and 20 rows a rule "
            "and minute; the same rule again gives the one that stands."
        ),
        params=RuleParams,
        answer=RuleMade,
        handler=lambda call: create_rule(call.ctx, call.params, call.owner()),
        key=True,
        writes=True,
        repeatable=True,
    ),
    Operation(
        name="test_rule",
        title="Test a rule",
        description=(
            "Replays the last seven days for a rule, written as for create_rule, without setting it: how "
            "often it would have hit, and the last ten hits. Above some number atLeast is true and hits a "
            "floor; what takes too long is refused with busy. eth, usd and pct are what moved was worth, "
            "null where that is not known."
        ),
        params=RuleParams,
        answer=RuleTested,
        handler=lambda call: replay_rule(call.ctx, call.params, call.owner()),
        key=True,
    ),
    Operation(
        name="delete_rule",
        title="Drop a rule",
        description=(
            "Drops the rule of an id from list_rules: it tells of nothing any more. Alerts that it raised "
            "stay in the inbox. Counts against the minute only."
        ),
        params=RuleIdParams,
        answer=RuleDropped,
        handler=lambda call: delete_rule(call.ctx, call.params, call.owner()),
        key=True,
        writes=True,
        destroys=True,
        counts="minute",
    ),
)
